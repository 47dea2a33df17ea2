package parts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"weft/bench/papers"
)

// file is a part's file.
type file struct {
	SHA256 string          `json:"sha256"` // of Part's bytes
	Part   json.RawMessage `json:"part"`
}

// content is what the sum is of.
type content struct {
	Key Key `json:"key"`
	*papers.Part
}

// errTorn is of a file that is not as it was written.
var errTorn = errors.New("is torn or was changed: its sum is not that of its content")

// Encode is the file of a part.
func Encode(k Key, p *papers.Part) ([]byte, error) {
	b, err := json.Marshal(content{k, p})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	b, err = json.Marshal(file{sum(b), b})
	return append(b, '\n'), err
}

// Decode reads the file of a part. An error says what is wrong with the file.
func Decode(name string, b []byte) (Key, *papers.Part, error) {
	var f file
	switch err := json.Unmarshal(b, &f); {
	case err == nil && f.SHA256 == "":
		return Key{}, nil, errors.New("is no part of a run")
	case err != nil || f.SHA256 != sum(f.Part):
		return Key{}, nil, errTorn
	}
	c := content{Part: new(papers.Part)}
	if err := json.Unmarshal(f.Part, &c); err != nil {
		return Key{}, nil, fmt.Errorf("is of another weft: %w", err)
	}
	switch {
	case c.Key.Format != format:
		return c.Key, nil, fmt.Errorf("has format %d, this weft reads %d", c.Key.Format, format)
	case c.Key.File() != name:
		return c.Key, nil, fmt.Errorf("has another name than the key in it, %s", c.Key.File())
	case c.Outcome == nil:
		return c.Key, nil, errors.New("has no outcome")
	}
	return c.Key, c.Part, nil
}

// maxFile is far more than any part has.
const maxFile = 64 << 20

// Read reads a file of a directory of parts, if it is a regular one and no larger than one
// may be. Its errors name the file.
func Read(dir fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(dir, name)
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: remove it", name)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, and no part is that large: remove it", name, info.Size())
	}
	return fs.ReadFile(dir, name)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
