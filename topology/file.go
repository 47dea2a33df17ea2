package topology

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

// ParseFile reads the longer form of a specification, in YAML: the same parameters, and
// links that have a rate of their own or are down.
//
//	kind: fat-tree
//	k: 4
//	fabric-rate: 100
//	core-rate: 100
//	links:
//	  - {link: e0.0-a0.2, rate: 40}
//	  - {link: 3.1-a0.2, down: true}
//
// Parse reads the String of the result, which does not include the links that are down.
// Errors name the line.
func ParseFile(yamlText []byte) (*Topology, error) {
	t, err := parseFile(yamlText)
	if err != nil {
		return nil, fmt.Errorf("topology file: %w", err)
	}
	return t, nil
}

func parseFile(text []byte) (*Topology, error) {
	root, err := oneDocument(text)
	if err != nil {
		return nil, err
	}
	name, list, links, err := splitFile(root)
	if err != nil {
		return nil, err
	}
	f, ok := formOf(name.value)
	if !ok {
		return nil, name.errorf("kind: unknown kind %q; known: %s", name.value, knownForms())
	}
	downs, rates, err := linksOf(links)
	if err != nil {
		return nil, err
	}
	t, err := build(f, append(list, rates...))
	if err != nil {
		return nil, err
	}
	down := make([]LinkID, len(downs))
	for i, p := range downs {
		l, err := t.LinkByName(p.key)
		if err != nil {
			return nil, p.errorf("%w", err)
		}
		down[i] = l.ID
	}
	return t.Without(down...), nil
}

// oneDocument reads a text that is one mapping.
func oneDocument(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty; begin with kind: fat-tree")
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: a second document; there must be one", more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: must be keys with values; begin with kind: fat-tree", root.Line)
	}
	return root, nil
}

// splitFile returns the kind, the parameters and the list of links, nil if
// there is none.
func splitFile(root *yaml.Node) (kind param, list []param, links *yaml.Node, err error) {
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.Value == "links" {
			if links != nil {
				return kind, nil, nil, fmt.Errorf("line %d: links given twice", key.Line)
			}
			if value.Kind != yaml.SequenceNode {
				return kind, nil, nil, fmt.Errorf("line %d: links must be a list, such as - {link: e0.0-a0.2, rate: 40}", value.Line)
			}
			links = value
			continue
		}
		p, err := scalar(key, value)
		switch {
		case err != nil:
			return kind, nil, nil, err
		case p.key != "kind":
			list = append(list, p)
		case kind.line > 0:
			return kind, nil, nil, p.errorf("kind given twice")
		default:
			kind = p
		}
	}
	if kind.line == 0 {
		return kind, nil, nil, fmt.Errorf("kind is missing; known: %s", knownForms())
	}
	return kind, list, links, nil
}

// scalar returns a key with its one value.
func scalar(key, value *yaml.Node) (param, error) {
	p := param{key: key.Value, value: value.Value, line: key.Line}
	if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
		return p, p.errorf("%q: must be a key with one value", key.Value)
	}
	return p, nil
}

// linksOf returns the links that are down, and those with a rate as
// parameters.
func linksOf(links *yaml.Node) (down, rates []param, err error) {
	if links == nil {
		return nil, nil, nil
	}
	for _, item := range links.Content {
		if item.Kind != yaml.MappingNode {
			return nil, nil, fmt.Errorf("line %d: a link must be keys with values, such as {link: e0.0-a0.2, rate: 40}", item.Line)
		}
		fields := make(map[string]param)
		for i := 0; i < len(item.Content); i += 2 {
			p, err := scalar(item.Content[i], item.Content[i+1])
			if err != nil {
				return nil, nil, err
			}
			if _, ok := fields[p.key]; ok {
				return nil, nil, p.errorf("%s given twice", p.key)
			}
			fields[p.key] = p
		}
		d, r, err := linkFields(item.Line, fields)
		if err != nil {
			return nil, nil, err
		}
		down, rates = append(down, d...), append(rates, r...)
	}
	return down, rates, nil
}

// linkFields reads one entry of the list of links.
func linkFields(line int, fields map[string]param) (down, rates []param, err error) {
	name, ok := fields["link"]
	if !ok {
		return nil, nil, fmt.Errorf("line %d: link is missing: name one, such as e0.0-a0.2", line)
	}
	if !isRate(name.value) || slices.Contains(rateKeys[:], name.value) {
		return nil, nil, name.errorf("link %q: name its two ends with a hyphen between, such as e0.0-a0.2", name.value)
	}
	for key, p := range fields {
		switch key {
		case "link":
		case "rate":
			rates = append(rates, param{key: name.value, value: p.value, line: p.line})
		case "down":
			switch p.value {
			case "true":
				down = append(down, param{key: name.value, line: p.line})
			case "false":
			default:
				return nil, nil, p.errorf("down: %q, must be true or false", p.value)
			}
		default:
			return nil, nil, p.errorf("unknown key %q; known: link, rate, down", key)
		}
	}
	return down, rates, nil
}
