package switchd

import "weft/fabric"

// Extension is fabric.Extension.
type Extension struct {
	Object  string `yaml:"object"`
	Program string `yaml:"program"`
	Pinned  string `yaml:"pinned"`
}

// extensions returns those of the configuration.
func (f *File) extensions() (list []fabric.Extension) {
	for _, e := range f.Extensions {
		list = append(list, fabric.Extension(e))
	}
	return list
}

func (f *File) checkExtensions() error {
	if len(f.Extensions) == 0 {
		return nil
	}
	if !f.Meter.Enabled {
		return f.lines.Errorf("extensions", "the meter calls them, and it is off; set meter.enabled to true")
	}
	if err := fabric.CheckExtensions(f.extensions()); err != nil {
		return f.lines.Errorf("extensions", "%w", err)
	}
	return nil
}
