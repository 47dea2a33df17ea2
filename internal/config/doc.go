// Package config reads what people configure weft's programs with: YAML files, key files
// and topologies. It decodes YAML strictly (Decode): unknown and repeated keys, anchors and
// a second document are errors. Every error has the key's full name, the file and the line.
// The size of files is bounded. The package looks at nothing else of the machine, and keeps
// no state.
package config
