package main

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weft/bench/apps"
	"weft/bench/asymmetry"
	"weft/bench/failover"
	"weft/bench/faults"
	"weft/bench/fct"
	"weft/bench/membership"
	"weft/bench/papers"
	"weft/bench/reorder"
	"weft/bench/scenario"
	"weft/bench/simfile"
	"weft/bench/throughput"
	"weft/fabric"
	"weft/internal/daemon"
	"weft/internal/dataplane"
	"weft/internal/doctor"
	"weft/internal/hostprog"
	"weft/internal/pacing"
	"weft/internal/prober"
	"weft/internal/schedulerd"
	"weft/internal/scheduling"
	"weft/internal/switchd"
	"weft/lab"
	"weft/luopan"
	"weft/stack"
	"weft/topoupdate/listen"
)

// printed is what weft puts out as JSON, by the file that does: TestJSON_everyPlace
// finds a file that is missing.
var printed = map[string][]any{
	"benchapps_linux.go":            {measured{[]apps.Result{}}},
	"benchasymmetry.go":             {measured{[]asymmetry.Result{}}},
	"benchfaults_linux.go":          {measured{[]faults.Result{}}, measured{faults.Health{}}},
	"benchfct.go":                   {measured{[]fct.Result{}}},
	"benchpermutation_linux.go":     {measured{[]permutationResult{}}},
	"benchpatterns_linux.go":        {measured{[]patternsResult{}}},
	"benchfailover.go":              {measured{[]failover.Result{}}, measured{failover.Degradation{}}, measured{failover.SoakResult{}}},
	"benchscenarios.go":             {measured{[]scenarioResult{}}, measured{[]scenario.SkewRow{}}},
	"benchthroughput_linux.go":      {measured{[]throughput.Result{}}},
	"benchthroughputsweep_linux.go": {measured{[]throughput.Cell{}}},
	"benchunits.go":                 {measured{[]unitsResult{}}},
	"bench.go":                      {measured{[]reorder.Result{}}},
	"benchmesh_linux.go":            {measured{membership.Result{}}},
	"blame.go":                      {blameJSON{}},
	"capture.go":                    {captureJSON{}},
	"commands.go":                   {commandJSON{}},
	"conns.go":                      {connsJSON{}},
	"demo.go":                       {measured{[]outcomeJSON{}}},
	"progress.go":                   {progressEvent{}},
	"doctor.go":                     {[]doctor.Finding{}},
	"scheduler.go":                  {schedulerd.Status{}},
	"statusrun.go":                  {daemon.Status{}, switchd.Status{}},
	"lab_linux.go":                  {[]lab.NodeStatus{}},
	"paths.go":                      {[]step{}},
	"pathsgraph.go":                 {[]step{}},
	"pathslive.go":                  {liveJSON{}},
	"plan.go":                       {fabric.NodePlan{}},
	"plangraph.go":                  {[]graphPlan{}},
	"sim.go":                        {[]listedExperiment{}, measured{[]papers.Report{}}, measured{papers.Report{}}},
	"simdecide.go":                  {measured{[]papers.Finding{}}},
	"simfile.go":                    {measured{[]simfile.Result{}}},
	"simpermutation.go":             {measured{simfile.Result{}}},
	"simmutants.go":                 {measured{[]papers.Trial{}}},
	"top.go":                        {pictureJSON{}},
	"trace.go":                      {traceJSON{}},
	"version.go":                    {version{}},
}

// measured are results that putResults prints, each with the run that it is from.
type measured struct{ of any }

func isMeasured(v any) bool { _, ok := v.(measured); return ok }

// behind is what the fields hold whose type is any: "" for the daemon's words on why it
// has nothing better.
var behind = map[string]any{
	"daemon.Status.Offload":        hostprog.SprayStats{},
	"daemon.Status.Steer":          hostprog.SteerStats{},
	"daemon.Status.Order":          hostprog.OrderStats{},
	"daemon.Status.Dataplane":      dataplane.GatewayStats{},
	"daemon.Status.QCN":            pacing.Stats{},
	"daemon.Status.Scheduler":      scheduling.Status{},
	"daemon.Status.Mesh":           daemon.MeshStatus{},
	"daemon.SampleStatus.Table":    luopan.Stats{},
	"daemon.FailureStatus.Updates": listen.Status{},
	"daemon.FailureStatus.Probes":  prober.Stats{},
}

// also are statistics that Go programs may put out as JSON themselves.
var also = []any{stack.Stats{}, dataplane.GatewayStats{}, hostprog.DetourStats{}}

var snake = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// keys calls bad with each field whose key in JSON is not in snake_case, and with each
// whose key nobody has chosen.
func keys(t reflect.Type, seen map[reflect.Type]bool, bad func(field, key string)) {
	if seen[t] || leaf(t) {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map: // keys of maps are data
		keys(t.Elem(), seen, bad)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			name := t.String() + "." + f.Name
			switch {
			case key == "-" && options == "", !f.IsExported() && !f.Anonymous:
				continue
			case f.Anonymous && key == "": // its fields are the struct's own
			case !snake.MatchString(key):
				bad(name, key)
			}
			if f.Type.Kind() != reflect.Interface {
				keys(f.Type, seen, bad)
			} else if v, ok := behind[name]; ok {
				keys(reflect.TypeOf(v), seen, bad)
			} else {
				bad(name+", of which nobody knows what it holds: say so in behind", key)
			}
		}
	}
}

// leaf reports whether a type says itself what it is in JSON.
func leaf(t reflect.Type) bool {
	for _, i := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// One style of keys: snake_case.
func TestJSON_keysAreSnakeCase(t *testing.T) {
	seen := make(map[reflect.Type]bool)
	check := func(where string, v any) {
		keys(reflect.TypeOf(v), seen, func(field, key string) {
			t.Errorf("%s: %s has the key %q: give it a tag in snake_case", where, field, key)
		})
	}
	for file, list := range printed {
		for _, v := range list {
			if m, ok := v.(measured); ok {
				check(file, runInfo{})
				v = m.of
			}
			check(file, v)
		}
	}
	for _, v := range also {
		check("statistics", v)
	}
	if len(seen) < 100 {
		t.Errorf("only %d types are looked at", len(seen))
	}
}

// A type with a bad key is noticed, wherever it is.
func TestJSON_badKeysAreNoticed(t *testing.T) {
	type inner struct {
		Good int `json:"good_1"`
		Bad  int
	}
	type outer struct {
		inner
		List    []map[string]*inner `json:"list"`
		Camel   int                 `json:"camelCase"`
		Kebab   int                 `json:"kebab-case,omitempty"`
		Any     any                 `json:"any"`
		Left    int                 `json:"-"`
		private int
	}
	got := make(map[string]string)
	keys(reflect.TypeFor[outer](), make(map[reflect.Type]bool), func(field, key string) {
		field, _, _ = strings.Cut(field, ",")
		got[field] = key
	})
	want := map[string]string{"main.inner.Bad": "", "main.outer.Camel": "camelCase", "main.outer.Kebab": "kebab-case", "main.outer.Any": "any"}
	if !maps.Equal(got, want) {
		t.Errorf("%v; want %v", got, want)
	}
}

// No tag in the tree names a key in another style, but where others' formats are read, and
// every file that prints JSON is in the table above.
func TestJSON_everyPlace(t *testing.T) {
	tags := 0
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if base := d.Name(); base == "third_party" || base == "testdata" || name == "../../internal/discover" || strings.HasPrefix(base, ".") && len(base) > 2 {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "printJSON" && printed[filepath.Base(name)] == nil {
					t.Errorf("%s prints JSON: name the type in printed", name)
				}
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "putResults" && !slices.ContainsFunc(printed[filepath.Base(name)], isMeasured) {
					t.Errorf("%s prints results: name the type in printed, as measured", name)
				}
			case *ast.Field:
				if n.Tag == nil {
					break
				}
				text, _ := strconv.Unquote(n.Tag.Value)
				key, _, _ := strings.Cut(reflect.StructTag(text).Get("json"), ",")
				if key != "" && key != "-" && !snake.MatchString(key) {
					t.Errorf("%s: the key %q is not in snake_case", name, key)
				}
				tags++
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if tags < 300 {
		t.Errorf("only %d tags found", tags)
	}
}
