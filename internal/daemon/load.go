package daemon

import "weft/internal/config"

// Load reads and validates a configuration file.
func Load(file string) (*Config, error) {
	text, err := config.Read(file, "weft host")
	if err != nil {
		return nil, err
	}
	return Parse(text, file)
}

// Parse reads and validates a configuration. file is its name in errors. Parse also reads
// the files that the configuration names.
func Parse(text []byte, file string) (*Config, error) {
	c := Default()
	var err error
	if c.lines, err = config.Decode(text, file, &c); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &c, nil
}
