// Package asymmetry measures how hosts share a fabric that is not symmetric
// (Luopan Fig. 1, §4.7): long streams and small requests from two racks to a
// third one of a leaf-spine, with one link down or slow, under one policy after
// the other.
package asymmetry
