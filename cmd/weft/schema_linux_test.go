package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"weft/internal/daemon"
	"weft/internal/schedulerd"
	"weft/internal/switchd"
)

var updateSchemas = flag.Bool("schemas", false, "write schema/*.json anew")

// object is a JSON object of a schema; its keys are printed in order of the alphabet.
type object = map[string]any

// schemaOf returns the JSON Schema of what a command prints: one of several Go values.
func schemaOf(name string, values []any) object {
	g := generator{defs: make(object)}
	var kinds []any
	for _, v := range values {
		if m, ok := v.(measured); ok {
			kinds = append(kinds, g.measured(reflect.TypeOf(m.of)))
			continue
		}
		kinds = append(kinds, g.of(reflect.TypeOf(v), false))
	}
	s := object{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "what weft prints as JSON: " + name}
	if len(kinds) == 1 {
		maps.Copy(s, kinds[0].(object))
	} else {
		s["anyOf"] = kinds
	}
	if len(g.defs) > 0 {
		s["$defs"] = g.defs
	}
	return s
}

// generator makes schemas of Go types, of named structs as $defs.
type generator struct{ defs object }

// of is the schema of a type. null says that encoding/json may print null for it.
func (g *generator) of(t reflect.Type, null bool) object {
	nullable := func(kind string) any {
		if null {
			return []string{kind, "null"}
		}
		return kind
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "integer", "description": "nanoseconds"}
	case leaf(t) && (t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]())):
		return object{"type": "string"}
	case leaf(t):
		return object{} // anything
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Pointer:
		if null {
			return object{"anyOf": []any{g.of(t.Elem(), true), object{"type": "null"}}}
		}
		return g.of(t.Elem(), true)
	case reflect.Slice:
		return object{"type": nullable("array"), "items": g.of(t.Elem(), true)}
	case reflect.Array:
		return object{"type": "array", "items": g.of(t.Elem(), true), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return object{"type": nullable("object"), "additionalProperties": g.of(t.Elem(), true)}
	case reflect.Struct:
		if t.Name() == "" {
			return g.structure(t)
		}
		if _, known := g.defs[t.String()]; !known {
			g.defs[t.String()] = nil // it may have itself in it
			g.defs[t.String()] = g.structure(t)
		}
		return object{"$ref": "#/$defs/" + t.String()}
	}
	if t.Kind() == reflect.Interface {
		return object{} // anything, in a list
	}
	panic("a type without a schema: " + t.String())
}

// measured is the schema of results that have a run each.
func (g *generator) measured(t reflect.Type) any {
	s := g.of(t, false)
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	def := g.defs[t.String()].(object)
	def["properties"].(object)[runKey] = g.of(reflect.TypeFor[runInfo](), false)
	if required, _ := def["required"].([]string); !slices.Contains(required, runKey) {
		def["required"] = slices.Sorted(slices.Values(append(required, runKey)))
	}
	return s
}

func (g *generator) structure(t reflect.Type) object {
	properties, required := make(object), []string{}
	g.fields(t, properties, &required)
	s := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	return s
}

// fields adds those of a struct and of the structs embedded in it.
func (g *generator) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case key == "-" && options == "", !f.IsExported() && !f.Anonymous:
		case f.Anonymous && key == "":
			g.fields(f.Type, properties, required)
		default:
			left := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
			properties[key] = g.field(t.String()+"."+f.Name, f.Type, !left)
			if !left {
				*required = append(*required, key)
			}
		}
	}
}

func (g *generator) field(name string, t reflect.Type, null bool) object {
	if t.Kind() != reflect.Interface {
		return g.of(t, null)
	}
	holds, ok := behind[name]
	if !ok {
		panic(name + ": nobody knows what it holds: say so in behind")
	}
	return object{"anyOf": []any{g.of(reflect.TypeOf(holds), false),
		object{"type": "object", "properties": object{"error": object{"type": "string"}}, "required": []string{"error"}, "description": "why it is not known"}}}
}

// schemaName is how the schema of what a file prints is called.
func schemaName(file string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(file, ".go"), "_linux")
	return map[string]string{"statusrun": "status", "lab": "lab-status", "sim": "sim", "bench": "bench-reorder", "pathsgraph": "paths-graph", "pathslive": "paths-live", "plangraph": "plan-graph"}[name]
}

// versions are those of the objects that have one.
var versions = map[reflect.Type]int{
	reflect.TypeFor[daemon.Status]():     daemon.StatusVersion,
	reflect.TypeFor[switchd.Status]():    switchd.StatusVersion,
	reflect.TypeFor[schedulerd.Status](): schedulerd.StatusVersion,
	reflect.TypeFor[blameJSON]():         blameVersion,
	reflect.TypeFor[captureJSON]():       captureVersion,
	reflect.TypeFor[connsJSON]():         connsVersion,
	reflect.TypeFor[traceJSON]():         traceVersion,
}

// There is a schema of all that is printed as JSON, and it is that of the Go types.
func TestSchemas(t *testing.T) {
	var want []string
	for file, values := range printed {
		name := schemaName(file)
		if name == "" {
			name = strings.TrimSuffix(strings.TrimSuffix(file, ".go"), "_linux")
		}
		want = append(want, name)
		var b bytes.Buffer
		if err := printJSON(&b, schemaOf(name, values)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("schema", name+".json")
		if *updateSchemas {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, b.Bytes()) {
			t.Errorf("%s is not that of the Go types (%v): go test ./cmd/weft -run TestSchemas -schemas writes it anew. If a key is gone or means something else, raise its version", path, err)
		}
	}
	slices.Sort(want)
	if !*updateSchemas {
		if got := strings.Fields(mustWeft(t, "schema")); !slices.Equal(got, want) {
			t.Errorf("there are schemas of %v, want %v", got, want)
		}
		var s object
		if err := json.Unmarshal([]byte(mustWeft(t, "schema", "status")), &s); err != nil || s["anyOf"] == nil {
			t.Errorf("schema status: %v, %v", s, err)
		}
	}
	wantError(t, "schema nosuch", "there is none of \"nosuch\"", "status")
}

// What encoding/json makes of random values is valid by the schema, as another library has it.
// What has a key of the wrong type is not, nor what lacks a key.
func TestSchemas_validateWhatIsPrinted(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 1))
	for file, values := range printed {
		for _, v := range values {
			text, err := json.Marshal(schemaOf(file, []any{v}))
			if err != nil {
				t.Fatal(err)
			}
			var s jsonschema.Schema
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			valid, err := s.Resolve(nil)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for round := range 20 {
				results, isResults := v.(measured)
				of := v
				if isResults {
					of = results.of
				}
				made := reflect.New(reflect.TypeOf(of)).Elem()
				fill(r, made, "", 4)
				if round == 0 {
					made.SetZero()
				}
				text, err := json.Marshal(made.Interface())
				if isResults {
					objects, list, err := withRun(newRunInfo(1, 2), made.Interface())
					if err != nil {
						t.Fatal(err)
					}
					if text, err = json.Marshal(objects); !list {
						text = objects[0]
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				var instance any
				if err := json.Unmarshal(text, &instance); err != nil {
					t.Fatal(err)
				}
				if made.Kind() == reflect.Slice && made.IsNil() {
					continue // [] is printed
				}
				if err := valid.Validate(instance); err != nil {
					t.Fatalf("%s: %s\nis not valid: %v", file, text, err)
				}
				o, ok := instance.(object)
				for key := range o {
					was := o[key]
					if _, isMap := was.(object); isMap || was == nil {
						continue // of a map's key, or an any's
					}
					o[key] = object{"no": "such"}
					if err := valid.Validate(instance); err == nil {
						t.Errorf("%s: %s may be an object", file, key)
					}
					o[key] = was
				}
				if _, has := versions[reflect.TypeOf(v)]; ok && has {
					delete(o, "version")
					if err := valid.Validate(instance); err == nil {
						t.Errorf("%s: without a version it is valid", file)
					}
				}
			}
		}
	}
}

// fill sets all that is exported to something, of maps and slices few elements.
func fill(r *rand.Rand, v reflect.Value, name string, depth int) {
	switch v.Interface().(type) {
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{10, 0, 0, byte(r.Uint32())})))
		return
	case netip.Prefix:
		v.Set(reflect.ValueOf(netip.PrefixFrom(netip.AddrFrom4([4]byte{10}), 8)))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage("1")))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString(fmt.Sprint(r.IntN(1000)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(r.NormFloat64())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(100) - 20)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64N(100))
	case reflect.Pointer:
		if depth > 0 && r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), "", depth-1)
		}
	case reflect.Slice:
		if n := r.IntN(3); depth > 0 && n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(r, v.Index(i), "", depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), "", depth-1)
		}
	case reflect.Map:
		if depth > 0 && v.Type().Key().Kind() == reflect.String {
			v.Set(reflect.MakeMap(v.Type()))
			e := reflect.New(v.Type().Elem()).Elem()
			fill(r, e, "", depth-1)
			v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), e)
		}
	case reflect.Interface:
		if holds, ok := behind[name]; ok {
			e := reflect.New(reflect.TypeOf(holds)).Elem()
			fill(r, e, "", depth-1)
			v.Set(e)
			if r.IntN(3) == 0 {
				v.Set(reflect.ValueOf(map[string]string{"error": "why"}))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(r, v.Field(i), v.Type().String()+"."+f.Name, depth)
			}
		}
	}
}
