package output

import (
	"strconv"
	"strings"
)

// Rsync checks that rsync --stats says that this many files with this many bytes together were
// transferred whole.
func Rsync(text string, files int, bytes int64) error {
	const program = "rsync"
	for _, want := range []struct {
		label, unit string
		n           int64
	}{
		{"Number of regular files transferred:", "", int64(files)},
		{"Literal data:", " bytes", bytes},
	} {
		s, ok := after(text, want.label)
		n, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSuffix(s, want.unit), ",", ""), 10, 64)
		if !ok || err != nil {
			return wrong(program, text, "no number after %q", want.label)
		}
		if n != want.n {
			return wrong(program, text, "%q is followed by %d in place of %d", want.label, n, want.n)
		}
	}
	if _, ok := after(text, "total size is "); !ok {
		return wrong(program, text, "the text is cut short: no line of the total size")
	}
	return nil
}
