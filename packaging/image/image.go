package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// config is how the image runs. The Dockerfile says the same.
func (p program) config() v1.Config {
	c := v1.Config{
		Entrypoint: []string{entrypoint},
		Cmd:        []string{"host"},
		Env:        []string{"PATH=/" + binFolder},
		WorkingDir: "/",
		StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":   "weft",
			"org.opencontainers.image.version": p.version(),
		},
	}
	if r := p.setting("vcs.revision"); r != "" {
		c.Labels["org.opencontainers.image.revision"] = r
	}
	return c
}

// imageOf is the image for one architecture.
func imageOf(p program) (v1.Image, error) {
	text, err := p.layer()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	at := v1.Time{Time: p.time()}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: layer, History: v1.History{Created: at, CreatedBy: "weft/packaging/image"}})
	if err != nil {
		return nil, err
	}
	c, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.Created, c.OS, c.Architecture, c.Config = at, "linux", p.arch, p.config()
	return mutate.ConfigFile(image, c)
}

// indexOf is the images of all architectures under one name.
func indexOf(all []program) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range all {
		image, err := imageOf(p)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", p.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: p.arch}}})
	}
	return index, nil
}

// push sends the image to a registry, and prints by which name it is found for ever.
func push(to string, index v1.ImageIndex, out io.Writer) error {
	ref, err := name.ParseReference(to)
	if err != nil {
		return fmt.Errorf("-push: %w", err)
	}
	if err := remote.WriteIndex(ref, index, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("-push: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s@%s\n", ref.Context(), digest)
	return err
}
