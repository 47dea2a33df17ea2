package daemon

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 1 << 20

// lines says where the keys of a file are, by their full names: tun.name,
// udp.peers[0].key. What is not in the file is not in the map.
type lines struct {
	file string
	at   map[string]int
}

// errorf makes an error that names a key and where it is.
func (l lines) errorf(key, format string, args ...any) error {
	where := l.file
	for k := key; ; {
		if n, ok := l.at[k]; ok {
			where = fmt.Sprintf("%s:%d", l.file, n)
			break
		}
		i := strings.LastIndexAny(k, ".[")
		if i < 0 {
			break
		}
		k = k[:i]
	}
	return fmt.Errorf("%s: %s: %w", where, key, fmt.Errorf(format, args...))
}

// Load reads and validates a configuration file.
func Load(file string) (*Config, error) {
	f, err := os.Open(file)
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("configuration: %w: the user that weft host runs as (key user) must be able to read it", err)
		}
		return nil, fmt.Errorf("configuration: %w; weft host --print-config shows one", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(text, file)
}

// Parse reads and validates a configuration. file is its name in errors; files
// that it names are read.
func Parse(text []byte, file string) (*Config, error) {
	c := Default()
	if err := decode(text, file, &c); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &c, nil
}

// decode sets what text has and leaves the rest of c as it is.
func decode(text []byte, file string, c *Config) error {
	if len(text) > maxConfig {
		return fmt.Errorf("%s: longer than %d bytes", file, maxConfig)
	}
	c.lines = lines{file, make(map[string]int)}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return syntaxError(file, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: a second document; a configuration is one", file)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	return c.lines.decodeStruct("", root, reflect.ValueOf(c).Elem())
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// syntaxError moves the line from the middle of the parser's message to the file.
func syntaxError(file string, err error) error {
	msg := err.Error()
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		return fmt.Errorf("%s:%s: not YAML: %s", file, m[1], msg[len(m[0]):])
	}
	return fmt.Errorf("%s: not YAML: %s", file, strings.TrimPrefix(msg, "yaml: "))
}

// tag returns the key of a field, and whether auto is one of its values.
func tag(f reflect.StructField) (key string, auto bool) {
	key, opt, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key, opt == "auto"
}

func (l lines) decodeStruct(path string, n *yaml.Node, v reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return l.wrong(path, n, "keys with values")
	}
	fields := make(map[string]int)
	var keys []string
	for i := range v.NumField() {
		if key, _ := tag(v.Type().Field(i)); key != "" {
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
			return l.errorf(name, "unknown key; %s", didYouMean(key.Value, keys))
		case seen[key.Value]:
			return l.errorf(name, "given twice; remove one")
		}
		seen[key.Value] = true
		_, auto := tag(v.Type().Field(field))
		if err := l.decodeValue(name, value, v.Field(field), auto); err != nil {
			return err
		}
	}
	return nil
}

func (l lines) decodeValue(path string, n *yaml.Node, v reflect.Value, auto bool) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return l.errorf(path, "anchors and aliases are not for this file; write the value out")
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

func (l lines) decodeList(path string, n *yaml.Node, v reflect.Value) error {
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

func (l lines) decodeScalar(path string, n *yaml.Node, v reflect.Value) error {
	s := n.Value
	switch p := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		if err := p.UnmarshalText([]byte(s)); err != nil || s == "" {
			return l.errorf(path, "%q is not %s", s, example(v.Type()))
		}
	case *time.Duration:
		d, err := time.ParseDuration(s)
		if err != nil {
			return l.errorf(path, "%q is not a time; write a number with its unit, such as 500us, 10ms or 1s", s)
		}
		*p = d
	case *string:
		*p = s
	case *int:
		i, err := strconv.Atoi(s)
		if err != nil {
			return l.errorf(path, "%q is not a whole number", s)
		}
		*p = i
	case *bool:
		if s != "true" && s != "false" {
			return l.errorf(path, "%q is neither true nor false", s)
		}
		*p = s == "true"
	default:
		panic("config: no decoder for " + v.Type().String())
	}
	return nil
}

// example says what a value of a type of package netip looks like.
func example(t reflect.Type) string {
	switch t.Name() {
	case "Addr":
		return "an address, such as 10.0.0.2"
	case "Prefix":
		return "a prefix, such as 10.9.0.0/16"
	}
	return "an address with a port, such as 0.0.0.0:5740"
}

// wrong says that a value is of the wrong kind.
func (l lines) wrong(path string, n *yaml.Node, want string) error {
	is := map[yaml.Kind]string{yaml.MappingNode: "keys with values", yaml.SequenceNode: "a list", yaml.ScalarNode: "one value"}[n.Kind]
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		is = "nothing"
	}
	if path == "" {
		return fmt.Errorf("%s:%d: the file has %s where %s must be", l.file, n.Line, is, want)
	}
	return l.errorf(path, "has %s where %s must be", is, want)
}
