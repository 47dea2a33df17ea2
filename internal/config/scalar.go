package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Scalar is the value of a key at the top of a configuration, whatever is wrong with the rest; ""
// if it is not there, is auto, or cannot be read.
func Scalar(text []byte, key string) string {
	if len(text) > MaxBytes {
		return ""
	}
	var doc yaml.Node
	if yaml.NewDecoder(strings.NewReader(string(text))).Decode(&doc) != nil || len(doc.Content) == 0 {
		return ""
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		if v := top.Content[i+1]; top.Content[i].Value == key && v.Kind == yaml.ScalarNode && v.Value != "auto" {
			return v.Value
		}
	}
	return ""
}
