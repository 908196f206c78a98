package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// boms writes a CycloneDX bill of materials for each program: the modules linked into it, and into the servers that it
// brings.
func (r *release) boms(context.Context) error {
	for _, p := range r.built {
		bom, err := r.bom(p)
		if err != nil {
			return fmt.Errorf("%s: %w", r.stem(p), err)
		}
		path := filepath.Join(r.out, r.stem(p)+".cdx.json")
		err = create(path, func(w io.Writer) error {
			return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *release) bom(p program) (*cyclonedx.BOM, error) {
	sum, err := digest(p.path)
	if err != nil {
		return nil, err
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial(sum)
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.when.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: p.name, Type: cyclonedx.ComponentTypeApplication, Name: p.name, Version: r.version,
			Description: summary,
			Hashes:      &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}},
		},
	}
	programs := []string{p.path}
	if p.name == full {
		for _, line := range lines {
			programs = append(programs, filepath.Join(filepath.Dir(p.path), line))
		}
	}
	var components []cyclonedx.Component
	seen := map[string]bool{}
	for _, path := range programs {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, err
		}
		add := func(name, version string) {
			url := "pkg:golang/" + name + "@" + version
			if !seen[url] {
				seen[url] = true
				components = append(components, cyclonedx.Component{
					BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: url,
				})
			}
		}
		add("std", info.GoVersion)
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			add(m.Path, m.Version)
		}
	}
	bom.Components = &components
	return bom, nil
}

// serial makes a UUID of a digest, so that two builds of the same bytes carry the same number.
func serial(sum string) string {
	s := []byte(sum[:32])
	s[12], s[16] = '8', 'a' // version 8 (vendor-specific), variant 1
	return fmt.Sprintf("urn:uuid:%s-%s-%s-%s-%s", s[:8], s[8:12], s[12:16], s[16:20], s[20:])
}

// digest is the SHA-256 of a file in hex.
func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
