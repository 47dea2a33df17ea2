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
	secretName = regexp.MustCompile(`(?i)key|passw|passphrase|secret|token|psk|credential|private|\bauth\b|cookie`)
	// openName are names that match and have none: numbers and names of files.
	openName = regexp.MustCompile(`(?i)(_file|_id|_ids)$`)
	// base64Key is a secret as weft keygen prints it.
	base64Key = regexp.MustCompile(`[A-Za-z0-9+/_-]{43}=`)
	// userInfo is what stands before the host in a URL.
	userInfo = regexp.MustCompile(`(://)[^/\s:@]+:[^/\s@]+@`)
	// assigned is a name and its value: of YAML, of JSON, of the environment.
	assigned = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.-]*)(["']?[ \t]*[:=][ \t]*)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s,}\]#"'\[{][^,}\]\r\n]*)`)
)

func isSecret(name string) bool { return secretName.MatchString(name) && !openName.MatchString(name) }

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
			r.walk(value, isSecret(name) || secret && len(name) > 0 && !openName.MatchString(name) && name != "id" && name != "from")
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
	var b strings.Builder
	below := -1 // the indentation of a secret's key whose value stands on the lines below it
	for line := range strings.Lines(s) {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		switch {
		case below >= 0 && strings.TrimSpace(line) == "":
		case below >= 0 && indent > below && !assigned.MatchString(line) && !strings.HasSuffix(strings.TrimSpace(line), ":"):
			b.WriteString(line[:indent] + removed + "\n")
			continue
		default:
			below = -1
		}
		if below < 0 && opens(line) {
			below = indent
		}
		b.WriteString(assigned.ReplaceAllStringFunc(line, hide))
	}
	return []byte(b.String())
}

// opened is a key whose value stands on the lines below it.
var opened = regexp.MustCompile(`^\s*(?:#\s*)?(?:-\s+)*["']?([A-Za-z_][A-Za-z0-9_.-]*)["']?\s*:\s*(?:[|>][-+0-9]*)?\s*$`)

// opens reports whether a secret stands below a line.
func opens(line string) bool {
	m := opened.FindStringSubmatch(line)
	return m != nil && isSecret(m[1])
}

// hide takes the value of a secret's name out.
func hide(assignment string) string {
	m := assigned.FindStringSubmatch(assignment)
	if !isSecret(m[1]) || strings.HasPrefix(m[3], removed) || harmless.MatchString(m[3]) {
		return assignment
	}
	return m[1] + m[2] + `"` + removed + `"`
}

// harmless are values that are no secrets, whatever their name: numbers, true and false, and the
// mark of a text on the lines below.
var harmless = regexp.MustCompile(`^(?:true|false|null|[|>][-+0-9]*|-?[0-9.]{1,5})\s*$`)
