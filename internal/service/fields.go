package service

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Field is a value of a status with its full name.
type Field struct{ Name, Value string }

// Fields flattens JSON: {"a":{"b":[1]}} becomes a.b.0 = 1. It keeps the order of the text.
// It needs no list of names, so it prints all of a newer daemon's status.
func Fields(text []byte) ([]Field, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var fields []Field
	err := flatten(d, "", &fields)
	return fields, err
}

func flatten(d *json.Decoder, name string, fields *[]Field) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := t.(json.Delim)
	if !ok {
		if t == nil {
			t = "-"
		}
		*fields = append(*fields, Field{name, fmt.Sprint(t)})
		return nil
	}
	if name != "" {
		name += "."
	}
	for i := 0; d.More(); i++ {
		key := fmt.Sprint(i)
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return err
			}
			key = fmt.Sprint(t)
		}
		if err := flatten(d, name+key, fields); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
