package switchd

import "weft/internal/service"

// Here says which key of the configuration in a file names what this machine does not have, a
// user, and what the user that the agent becomes may not read. It changes nothing.
func (f *File) Here(file string) error {
	a, err := service.LookUp(f.User)
	if err != nil {
		return f.lines.Errorf("user", "%w", err)
	}
	if err := a.Reads(func() error { _, err := Load(file); return err }); err != nil {
		return f.lines.Errorf("user", "%w", err)
	}
	return nil
}
