package graph

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads a Graph in YAML.
//
//	nodes:
//	  spine1: {tier: 2, addresses: [172.16.0.1, "2001:db8::1"], as: 65001}
//	  leaf1:  {tier: 1, addresses: [172.16.1.1], prefixes: [192.168.1.0/26], as: 65101}
//	  web1:   {addresses: [192.168.1.2]}
//	links:
//	  - {ends: [web1, leaf1]}
//	  - {ends: [leaf1, spine1], ports: [swp1, swp1], rate: 25000}
//	  - {ends: [leaf1, spine1], count: 2}
//
// Further keys of a node are as and, of a switch, sids, of which decap4 and decap6 may be left
// out (see SIDs):
//
//	sids: {node: "fcbb:bbbb:1::/48", decap4: "fcbb:bbbb:1:fe04::/64", decap6: "fcbb:bbbb:1:fe06::/64"}
//
// Those of a link are rate (Mbit/s) and count, of links that are alike. A node without a tier
// is a host. Errors name the line.
func Parse(text []byte) (*Graph, error) {
	s, err := ParseSpec(text)
	if err != nil {
		return nil, err
	}
	return New(s)
}

// ParseSpec reads what New makes a Graph of.
func ParseSpec(text []byte) (Spec, error) {
	s, err := parse(text)
	if err != nil {
		return s, fmt.Errorf("graph: %w", err)
	}
	return s, nil
}

func parse(text []byte) (s Spec, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return s, errors.New("the file is empty; begin with nodes:")
	} else if err != nil {
		return s, err
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return s, errors.New("there must be one document")
	}
	fields, err := fieldsOf(doc.Content[0], "a graph", "nodes", "links")
	if err != nil {
		return s, err
	}
	for _, f := range fields {
		if f.name == "nodes" {
			err = s.readNodes(f.value)
		} else {
			err = s.readLinks(f.value)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

type field struct {
	name  string
	value *yaml.Node
}

// fieldsOf returns the keys of a mapping with their values, each once and of those that are
// known.
func fieldsOf(n *yaml.Node, what string, known ...string) (list []field, err error) {
	if n.Kind != yaml.MappingNode {
		return nil, errorf(n.Line, "%s must be keys with values: %s", what, strings.Join(known, ", "))
	}
	seen := make(map[string]bool)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		ok := len(known) == 0
		for _, k := range known {
			ok = ok || k == key.Value
		}
		switch {
		case key.Kind != yaml.ScalarNode || !ok:
			return nil, errorf(key.Line, "%s: unknown key %q; known: %s", what, key.Value, strings.Join(known, ", "))
		case seen[key.Value]:
			return nil, errorf(key.Line, "%s: %s given twice", what, key.Value)
		}
		seen[key.Value] = true
		list = append(list, field{key.Value, n.Content[i+1]})
	}
	return list, nil
}

func (s *Spec) readNodes(n *yaml.Node) error {
	list, err := fieldsOf(n, "nodes")
	if err != nil {
		return err
	}
	for i, f := range list {
		node := Node{Name: f.name, Line: n.Content[2*i].Line}
		if f.value.Kind == yaml.ScalarNode && f.value.Tag == "!!null" {
			s.Nodes = append(s.Nodes, node)
			continue
		}
		keys, err := fieldsOf(f.value, "node "+f.name, "tier", "addresses", "prefixes", "as", "sids")
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.name == "sids" {
				err = node.readSIDs(k.value)
			} else if err = node.read(k); err != nil {
				err = errorf(k.value.Line, "node %s: %s: %w", f.name, k.name, err)
			}
			if err != nil {
				return err
			}
		}
		s.Nodes = append(s.Nodes, node)
	}
	return nil
}

func (n *Node) read(f field) (err error) {
	switch f.name {
	case "tier":
		n.Tier, err = number(f.value, MaxTier)
	case "addresses":
		n.Addresses, err = listOf(f.value, parseAddr)
	case "prefixes":
		n.Prefixes, err = listOf(f.value, parsePrefix)
	case "as":
		var as uint64
		as, err = strconv.ParseUint(f.value.Value, 10, 32)
		if n.AS = uint32(as); err != nil {
			err = fmt.Errorf("%q, must be a number of 32 bits", f.value.Value)
		}
	}
	return err
}

// readSIDs reads a node's SIDs. Its errors are complete.
func (n *Node) readSIDs(value *yaml.Node) error {
	what := "node " + n.Name + ": sids"
	keys, err := fieldsOf(value, what, "node", "decap4", "decap6")
	if err != nil {
		return err
	}
	for _, k := range keys {
		p, err := parsePrefix(k.value.Value)
		if err != nil {
			return errorf(k.value.Line, "%s: %s: %w", what, k.name, err)
		}
		switch k.name {
		case "node":
			n.SIDs.Node = p
		case "decap4":
			n.SIDs.Decap4 = p
		case "decap6":
			n.SIDs.Decap6 = p
		}
	}
	return nil
}

func (s *Spec) readLinks(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return errorf(n.Line, "links must be a list, such as - {ends: [leaf1, spine1]}")
	}
	for _, item := range n.Content {
		l, count := Link{Line: item.Line}, 1
		keys, err := fieldsOf(item, "a link", "ends", "ports", "rate", "count")
		if err != nil {
			return err
		}
		for _, k := range keys {
			switch k.name {
			case "ends":
				l.Ends, err = pair(k.value)
			case "ports":
				l.Ports, err = pair(k.value)
			case "rate":
				if l.Rate, err = strconv.ParseFloat(k.value.Value, 64); err != nil || !(l.Rate >= minRate && l.Rate <= MaxRate) {
					err = fmt.Errorf("%q, must be a rate in Mbit/s, from %v to %.0f", k.value.Value, minRate, MaxRate)
				}
			case "count":
				if count, err = number(k.value, maxBundle); err == nil && count == 0 {
					err = fmt.Errorf("0, must be at least 1")
				}
			}
			if err != nil {
				return errorf(k.value.Line, "link: %s: %w", k.name, err)
			}
		}
		if l.Ends[0] == "" || l.Ends[1] == "" {
			return errorf(item.Line, "link: ends is missing, such as ends: [leaf1, spine1]")
		}
		if count > 1 && (l.Ports[0] != "" || l.Ports[1] != "") {
			return errorf(item.Line, "link %s: %d links cannot have the same ports; list them one by one", l.name(), count)
		}
		for range count {
			s.Links = append(s.Links, l)
		}
		if len(s.Links) > MaxLinks {
			return errorf(item.Line, "more than %d links", MaxLinks)
		}
	}
	return nil
}

func parseAddr(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("%q, must be an address, such as 172.16.0.1", text)
	}
	return a, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q, must be a prefix, such as 192.168.1.0/26", text)
	}
	return p, nil
}

const (
	minRate   = 0.001 // Mbit/s
	maxBundle = 1024  // links of one entry
)

func number(n *yaml.Node, most int) (int, error) {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < 0 || v > most {
		return 0, fmt.Errorf("%q, must be a number from 0 to %d", n.Value, most)
	}
	return v, nil
}

func pair(n *yaml.Node) (p [2]string, err error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		return p, errors.New("must be a list of two names")
	}
	for i, c := range n.Content {
		if c.Kind != yaml.ScalarNode {
			return p, errors.New("must be a list of two names")
		}
		p[i] = c.Value
	}
	return p, nil
}

func listOf[T any](n *yaml.Node, read func(string) (T, error)) (list []T, err error) {
	if n.Kind != yaml.SequenceNode {
		return nil, errors.New("must be a list, in brackets")
	}
	for _, c := range n.Content {
		v, err := read(c.Value)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}
