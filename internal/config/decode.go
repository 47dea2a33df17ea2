package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"weft/internal/exitcode"
)

// Decode sets the fields that text has in the struct to which to points, and leaves the
// others as they are. file is the name of the text in errors. Values are strings, whole
// numbers, float64, booleans, durations, structs, slices, and types that unmarshal text.
// One string may stand for a list of strings.
func Decode(text []byte, file string, to any) (Lines, error) {
	l := Lines{file, make(map[string]int)}
	return l, exitcode.AsUsage(l.decode(text, reflect.ValueOf(to).Elem()))
}

func (l Lines) decode(text []byte, to reflect.Value) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("%s: longer than %d bytes; a configuration must be shorter", l.file, MaxBytes)
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return syntaxError(l.file, text, err)
	}
	var second yaml.Node
	switch err := d.Decode(&second); {
	case err == nil:
		return fmt.Errorf("%s:%d: a second document; a configuration must be one: remove the line ---", l.file, second.Line)
	case !errors.Is(err, io.EOF):
		return syntaxError(l.file, text, err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	return l.decodeStruct("", root, to)
}

// Tag returns the key of a field, and whether auto is one of its values.
func Tag(f reflect.StructField) (key string, auto bool) {
	key, opt, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key, opt == "auto"
}

func (l Lines) decodeStruct(path string, n *yaml.Node, v reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return l.wrong(path, n, "keys with values")
	}
	fields := make(map[string]int)
	var keys []string
	for i := range v.NumField() {
		if key, _ := Tag(v.Type().Field(i)); key != "" {
			fields[key] = i
			keys = append(keys, key)
		}
	}
	seen := make(map[string]bool)
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		l.at[name] = key.Line
		field, ok := fields[key.Value]
		switch {
		case !ok:
			return l.Errorf(name, "unknown key; %s", DidYouMean(key.Value, keys))
		case seen[key.Value]:
			return l.Errorf(name, "given twice; remove one")
		}
		seen[key.Value] = true
		_, auto := Tag(v.Type().Field(field))
		if err := l.decodeValue(name, value, v.Field(field), auto); err != nil {
			return err
		}
	}
	return nil
}

func (l Lines) decodeValue(path string, n *yaml.Node, v reflect.Value, auto bool) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return l.Errorf(path, "anchors and aliases are not for this file; write the value out")
	}
	if auto && n.Kind == yaml.ScalarNode && n.Value == "auto" {
		v.SetZero()
		return nil
	}
	_, text := v.Addr().Interface().(encoding.TextUnmarshaler)
	switch {
	case v.Kind() == reflect.Struct && !text:
		return l.decodeStruct(path, n, v)
	case v.Kind() == reflect.Slice:
		return l.decodeList(path, n, v)
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		return l.wrong(path, n, "one value")
	}
	return l.decodeScalar(path, n, v)
}

func (l Lines) decodeList(path string, n *yaml.Node, v reflect.Value) error {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" && v.Type().Elem().Kind() == reflect.String {
		one := reflect.MakeSlice(v.Type(), 1, 1)
		v.Set(one)
		return l.decodeValue(path, n, one.Index(0), false)
	}
	if n.Kind != yaml.SequenceNode {
		return l.wrong(path, n, "a list, [] for an empty one")
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		name := fmt.Sprintf("%s[%d]", path, i)
		l.at[name] = item.Line
		if err := l.decodeValue(name, item, list.Index(i), false); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

func (l Lines) decodeScalar(path string, n *yaml.Node, v reflect.Value) error {
	s := n.Value
	switch p := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		if err := p.UnmarshalText([]byte(s)); err != nil || s == "" {
			return l.Errorf(path, "%q is not %s", s, example(v.Type()))
		}
	case *time.Duration:
		d, err := time.ParseDuration(s)
		if err != nil {
			return l.Errorf(path, "%q is not a time; write a number with its unit, such as 500us, 10ms or 1s", s)
		}
		*p = d
	case *string:
		*p = s
	case *int:
		i, err := strconv.Atoi(s)
		if err != nil {
			return l.Errorf(path, "%q is not a whole number%s; write digits alone, such as 4", s, tooLarge(err))
		}
		*p = i
	case *float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return l.Errorf(path, "%q is not a number%s; write one such as 0.5", s, tooLarge(err))
		}
		*p = f
	case *bool:
		if s != "true" && s != "false" {
			return l.Errorf(path, "%q is neither true nor false; write one of them", s)
		}
		*p = s == "true"
	default:
		panic("config: no decoder for " + v.Type().String())
	}
	return nil
}

// tooLarge says that a number is one, but larger than weft's are.
func tooLarge(err error) string {
	if errors.Is(err, strconv.ErrRange) {
		return " of 64 bits"
	}
	return ""
}

// example says what a value of a type that unmarshals text looks like.
func example(t reflect.Type) string {
	switch t.Name() {
	case "Choice":
		return "one of auto, true and false"
	case "Addr":
		return "an address, such as 10.0.0.2"
	case "Time":
		return "a time of day as in RFC 3339, such as 2027-01-31T12:00:00Z"
	case "QueueLength":
		return "a length of a queue; write bytes, such as 30000, or a time, such as 65us"
	case "Prefix":
		return "a prefix, such as 10.9.0.0/16"
	}
	return "an address with a port, such as 0.0.0.0:5740"
}

// wrong says that a value is of the wrong kind.
func (l Lines) wrong(path string, n *yaml.Node, want string) error {
	is := map[yaml.Kind]string{yaml.MappingNode: "keys with values", yaml.SequenceNode: "a list", yaml.ScalarNode: "one value"}[n.Kind]
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		is = "nothing"
	}
	if path == "" {
		return fmt.Errorf("%s:%d: the file has %s where %s must be", l.file, n.Line, is, want)
	}
	return l.Errorf(path, "has %s where %s must be", is, want)
}
