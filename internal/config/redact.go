package config

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Redactor takes secrets out of texts. It knows them by the names of keys, by what it has
// learned from files, and by the form of weft's own: 32 bytes in base64.
type Redactor struct {
	known []string // the longest first
}

// removed stands for a secret.
const removed = "(removed)"

// minKnown is how long a word must be to be taken out wherever it occurs, in bytes.
const minKnown = 6

var (
	// secretName are words in names of keys and variables that have a secret as their value.
	secretName = regexp.MustCompile(`(?i)key|passw|passphrase|secret|token|psk|credential|private|authori[sz]ation|bearer|cookie|(?:^|[^a-z])(?:pass|auth|pwd)(?:$|[^a-z])|(?-i:Pass|Pwd|Auth)(?:$|(?-i:[A-Z_]))`)
	// openName are names that match and have none: numbers, names of files, and lines of programs.
	openName = regexp.MustCompile(`(?i)(?:_file|key_ids?|\.go)$`)
	// base64Key is a secret as weft keygen prints it.
	base64Key = regexp.MustCompile(`[A-Za-z0-9+/_-]{43}=`)
	// userInfo is what stands before the host in a URL.
	userInfo = regexp.MustCompile(`(://)(?:[^/\s:@"']*:[^\s@"']+|[^/\s@"']+)@`)
)

func isSecret(name string) bool { return secretName.MatchString(name) && !openName.MatchString(name) }

// openValue reports whether the value of a name is none below a secret's name, either.
func openValue(name string) bool {
	return name == "" || name == "id" || name == "from" || openName.MatchString(name)
}

// IsSecret reports whether the name of a key or a variable says that its value is a secret.
func IsSecret(name string) bool { return isSecret(name) }

// Learn notes the secrets of a configuration, and of the files that it names, as far as they
// can be read. Text that is not YAML teaches nothing: Text knows its keys by their names.
func (r *Redactor) Learn(text []byte) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if d.Decode(&doc) != nil {
			break
		}
		r.walk(&doc, false)
	}
	r.sort()
}

// Note notes a secret, unless it is so short that it would be found everywhere.
func (r *Redactor) Note(secret string) {
	r.note(secret)
	r.sort()
}

// sort has the longest first, of which others may be parts.
func (r *Redactor) sort() {
	slices.SortFunc(r.known, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.known = slices.Compact(r.known)
}

// walk notes the values below a node; secret says that they are.
func (r *Redactor) walk(n *yaml.Node, secret bool) {
	switch n.Kind {
	case yaml.AliasNode: // of a scalar alone: others may refer to each other without end
		if n.Alias.Kind == yaml.ScalarNode {
			r.walk(n.Alias, secret)
		}
	case yaml.ScalarNode:
		if secret {
			r.note(n.Value)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i].Value, n.Content[i+1]
			if strings.HasSuffix(name, "_file") && secretName.MatchString(name) && value.Kind == yaml.ScalarNode {
				if b, err := read(value.Value, maxKeyFile); err == nil {
					r.note(string(b))
				}
				continue
			}
			r.walk(value, isSecret(name) || secret && !openValue(name))
		}
	default:
		for _, c := range n.Content {
			r.walk(c, secret)
		}
	}
}

// note keeps a secret, as a whole and line by line.
func (r *Redactor) note(secret string) {
	for _, s := range append(strings.Split(secret, "\n"), secret) {
		if s = strings.TrimSpace(s); len(s) >= minKnown {
			r.known = append(r.known, s)
		}
	}
}

// Text returns a text without secrets.
func (r *Redactor) Text(text []byte) []byte {
	s := string(text)
	for _, secret := range r.known {
		s = strings.ReplaceAll(s, secret, removed)
	}
	s = base64Key.ReplaceAllString(s, removed)
	s = userInfo.ReplaceAllString(s, "${1}"+removed+"@")
	s = bearer.ReplaceAllString(s, "${1} "+removed)
	l := lines{anchors: make(map[string]bool)}
	for _, m := range aliased.FindAllStringSubmatch(s, -1) {
		if isSecret(m[1]) {
			l.anchors[m[2]] = true
		}
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		body := strings.TrimRight(line, "\r\n")
		b.WriteString(l.clean(body))
		b.WriteString(line[len(body):])
	}
	return []byte(b.String())
}
