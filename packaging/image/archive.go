package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// imageName is what programs that load the archive call the image.
const imageName = "weft:latest"

// saved is an element of manifest.json, as docker save writes it.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// writeArchive writes an OCI image layout as a tar. It has manifest.json as well, of the first
// architecture, by which older programs load it.
func writeArchive(name string, index v1.ImageIndex) error {
	files, err := archive(index)
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := writeTar(f, files, epoch); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	return f.Close()
}

// archive is the files of the layout: the index, and every blob that it leads to.
func archive(index v1.ImageIndex) ([]file, error) {
	var blobs []file
	var old []saved
	add := func(h v1.Hash, text []byte) string {
		name := "blobs/" + h.Algorithm + "/" + h.Hex
		blobs = append(blobs, file{name, 0o644, text})
		return name
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			return nil, err
		}
		s, err := addImage(image, m.Digest, add)
		if err != nil {
			return nil, err
		}
		old = append(old, s)
	}
	raw, err := index.RawManifest()
	if err != nil {
		return nil, err
	}
	digest, err := index.Digest()
	if err != nil {
		return nil, err
	}
	add(digest, raw)
	media, err := index.MediaType()
	if err != nil {
		return nil, err
	}
	top, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: media, Manifests: []v1.Descriptor{{
		MediaType: media, Digest: digest, Size: int64(len(raw)),
		Annotations: map[string]string{"io.containerd.image.name": "docker.io/library/" + imageName, "org.opencontainers.image.ref.name": "latest"},
	}}})
	if err != nil {
		return nil, err
	}
	oldText, err := json.Marshal(old[:1])
	if err != nil {
		return nil, err
	}
	files := []file{{"blobs", 0o755, nil}, {"blobs/sha256", 0o755, nil}}
	files = append(files, blobs...)
	return append(files, file{"index.json", 0o644, top}, file{"manifest.json", 0o644, oldText},
		file{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)}), nil
}

// addImage adds the blobs of one architecture's image.
func addImage(image v1.Image, digest v1.Hash, add func(v1.Hash, []byte) string) (s saved, err error) {
	layers, err := image.Layers()
	if err != nil {
		return s, err
	}
	for _, l := range layers {
		h, err := l.Digest()
		if err != nil {
			return s, err
		}
		r, err := l.Compressed()
		if err != nil {
			return s, err
		}
		text, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return s, err
		}
		s.Layers = append(s.Layers, add(h, text))
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return s, err
	}
	h, err := image.ConfigName()
	if err != nil {
		return s, err
	}
	s.Config, s.RepoTags = add(h, config), []string{imageName}
	manifest, err := image.RawManifest()
	if err != nil {
		return s, err
	}
	add(digest, manifest)
	return s, nil
}
