// Package asymmetry measures how hosts share a fabric that is not symmetric (Luopan Fig.
// 1, §4.7). Hosts of two racks send long streams and small requests to a third rack of a
// leaf-spine, with one link down or slow, under each policy in turn.
package asymmetry
