// Package config reads what people configure weft's programs with: YAML files, key
// files and topologies. YAML is decoded strictly (Decode): unknown and repeated keys,
// anchors and a second document are errors, and every error has the key's full name,
// the file and the line. Files are read up to a bound. Nothing here looks at the
// machine otherwise, or keeps state.
package config
