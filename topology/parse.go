package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a specification: a kind of fabric and its parameters, in any
// order.
//
//	fat-tree:k=4              optionally hosts=N per edge switch
//	leaf-spine:leaves=4,spines=4,hosts=8
//	vl2:d0=2,d1=4,d2=4        optionally hosts=N per edge switch
//
// Further parameters are rates in Mbit/s: host-rate, fabric-rate (edge to
// aggregation switch, or leaf to spine), core-rate, and that of a single link
// by its name, such as e0.0-a0.2=40.
func Parse(spec string) (*Topology, error) {
	name, args, _ := strings.Cut(spec, ":")
	f, ok := formOf(name)
	if !ok {
		return nil, fmt.Errorf("topology %q: unknown kind %q; known: %s", spec, name, knownForms())
	}
	var list []param
	for _, arg := range strings.Split(args, ",") {
		key, value, _ := strings.Cut(arg, "=")
		list = append(list, param{key: key, value: value})
	}
	t, err := build(f, list)
	if err != nil {
		return nil, fmt.Errorf("topology %q: %w; write %s", spec, err, f.example)
	}
	return t, nil
}

// param is a parameter of a specification or a file.
type param struct {
	key, value string
	line       int // in the file; 0: none
}

// errorf returns an error about a parameter, with its line if it has one.
func (p param) errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if p.line > 0 {
		return fmt.Errorf("line %d: %w", p.line, err)
	}
	return err
}

// valueError is about the value of a parameter.
type valueError struct {
	key string
	err error
}

func (e *valueError) Error() string { return e.err.Error() }

func badValue(key, format string, args ...any) error {
	return &valueError{key, fmt.Errorf(format, args...)}
}

// locate adds to an error about a value the line that has it.
func locate(err error, list []param) error {
	var bad *valueError
	if !errors.As(err, &bad) {
		return err
	}
	for _, p := range list {
		if p.key == bad.key {
			return p.errorf("%w", err)
		}
	}
	return err
}

// form is how a kind is written.
type form struct {
	kind     kind
	example  string
	required []string
	optional []string
	build    func(n map[string]int) (*Topology, error)
}

var forms = []form{
	{fatTree, "fat-tree:k=4", []string{"k"}, []string{"hosts"},
		func(n map[string]int) (*Topology, error) { return newFatTree(n["k"], n["hosts"]) }},
	{leafSpine, "leaf-spine:leaves=4,spines=4,hosts=8", []string{"leaves", "spines", "hosts"}, nil,
		func(n map[string]int) (*Topology, error) { return newLeafSpine(n["leaves"], n["spines"], n["hosts"]) }},
	{vl2, "vl2:d0=2,d1=4,d2=4", []string{"d0", "d1", "d2"}, []string{"hosts"},
		func(n map[string]int) (*Topology, error) { return newVL2(n["d0"], n["d1"], n["d2"], n["hosts"]) }},
}

func formOf(name string) (form, bool) {
	for _, f := range forms {
		if f.kind.String() == name {
			return f, true
		}
	}
	return form{}, false
}

func knownForms() string {
	var list []string
	for _, f := range forms {
		s := f.kind.String() + ":"
		for i, key := range f.required {
			if i > 0 {
				s += ","
			}
			s += key + "=" + strings.ToUpper(key)
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

// build makes a Topology of parameters.
func build(f form, list []param) (*Topology, error) {
	numbers := make(map[string]int)
	var given []param // rates
	seen := make(map[string]bool)
	for _, p := range list {
		if seen[p.key] {
			return nil, p.errorf("parameter %s given twice", p.key)
		}
		seen[p.key] = true
		if isRate(p.key) {
			given = append(given, p)
			continue
		}
		n, err := f.number(p)
		if err != nil {
			return nil, err
		}
		numbers[p.key] = n
	}
	for _, key := range f.required {
		if !seen[key] {
			return nil, fmt.Errorf("parameter %s is missing", key)
		}
	}
	t, err := f.build(numbers)
	if err != nil {
		return nil, locate(err, list)
	}
	return t.withRates(given)
}

// number reads the value of a parameter that is one.
func (f form) number(p param) (int, error) {
	optional := slices.Contains(f.optional, p.key)
	if !optional && !slices.Contains(f.required, p.key) {
		known := append(append([]string(nil), f.required...), f.optional...)
		return 0, p.errorf("unknown parameter %q; known: %s, %s, or a link such as e0.0-a0.2",
			p.key, strings.Join(known, ", "), strings.Join(rateKeys[:], ", "))
	}
	if p.value == "" {
		return 0, p.errorf("parameter %s has no value", p.key)
	}
	n, err := strconv.Atoi(p.value)
	if err != nil {
		return 0, p.errorf("%s=%s: not a whole number; give one such as %s=4", p.key, p.value, p.key)
	}
	// The constructors take 0 for the default.
	if optional && n == 0 {
		return 0, p.errorf("%s=0: must be at least 1; leave it out for the default", p.key)
	}
	return n, nil
}
