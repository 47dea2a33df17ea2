package service

import (
	"reflect"
	"testing"
)

func TestFields_flattenInOrder(t *testing.T) {
	got, err := Fields([]byte(`{"z":1,"a":{"b":[true,{"c":18446744073709551615}],"d":null},"e":"x y","f":{},"g":1.5}`))
	want := []Field{{"z", "1"}, {"a.b.0", "true"}, {"a.b.1.c", "18446744073709551615"}, {"a.d", "-"}, {"e", "x y"}, {"g", "1.5"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := Fields([]byte(`{"a":`)); err == nil {
		t.Error("no error for half of a text")
	}
}
