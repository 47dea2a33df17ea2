// Package kerneltest helps the tests of weft's packages that configure the kernel:
// namespaces that are gone after a test, devices, packet sockets, IPv4 packets,
// waiting. Only tests import it.
package kerneltest
