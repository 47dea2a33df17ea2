package switchd

import "weft/internal/service"

// Here says which key of a configuration names what this machine does not have: a user. It
// changes nothing.
func (f *File) Here() error {
	if _, err := service.LookUp(f.User); err != nil {
		return f.lines.Errorf("user", "%w", err)
	}
	return nil
}
