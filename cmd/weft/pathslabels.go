package main

import (
	"fmt"
	"strings"

	"weft/encap"
)

// label makes s a path whose output ports a carrier of labels carries.
func (s *step) label(carrier encap.Carrier, ports []int) error {
	switch carrier {
	case encap.CarrierSRv6:
		sids, err := encap.SIDs(ports)
		if err != nil {
			return err
		}
		s.Address, s.Labels = sids.String(), ports
	case encap.CarrierMPLS:
		s.Address, s.Labels = "", ports
	}
	return nil
}

// stack returns what carries the labels of s, if there are any, with a space
// behind it: the IPv6 destination, or MPLS labels as ip(8) writes them.
func (s step) stack(carrier encap.Carrier) string {
	switch {
	case s.Labels == nil:
		return ""
	case carrier == encap.CarrierSRv6:
		return fmt.Sprintf("%-24s ", s.Address)
	}
	list := make([]string, len(s.Labels))
	for i, port := range s.Labels {
		list[i] = fmt.Sprint(encap.MPLSLabel(port))
	}
	return strings.Join(list, "/") + " "
}
