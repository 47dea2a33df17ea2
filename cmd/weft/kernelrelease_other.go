//go:build !unix

package main

func kernelRelease() string { return "" }
