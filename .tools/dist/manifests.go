package main

import (
	"bytes"
	"context"
	"embed"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var templates embed.FS

// artefact is an archive as the manifests name it.
type artefact struct {
	OS, Arch, URL, SHA256, Exe string
}

// manifests writes the plugin manifest for krew and the formula for Homebrew.
func (r *release) manifests(context.Context) error {
	var list []artefact
	for _, p := range r.built {
		if (p.name == lite) != r.liteOnly {
			continue
		}
		name := r.archiveName(p)
		sum, err := digest(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		url := home + "/releases/download/v" + r.version + "/" + name
		list = append(list, artefact{OS: p.OS, Arch: p.Arch, URL: url, SHA256: sum, Exe: p.exe("etcd-medic")})
	}
	systems := map[string]map[string]artefact{} // as Homebrew names them
	for _, a := range list {
		osName, known := map[string]string{"darwin": "macos", "linux": "linux"}[a.OS]
		if !known {
			continue
		}
		if systems[osName] == nil {
			systems[osName] = map[string]artefact{}
		}
		systems[osName][map[string]string{"amd64": "intel", "arm64": "arm"}[a.Arch]] = a
	}
	data := map[string]any{"Version": r.version, "Home": home, "Summary": summary, "All": list, "Systems": systems}
	all, err := template.ParseFS(templates, "*.tmpl")
	if err != nil {
		return err
	}
	for _, name := range []string{"krew.yaml", "etcd-medic.rb"} {
		var b bytes.Buffer
		if err := all.ExecuteTemplate(&b, name+".tmpl", data); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// checksums writes SHA256SUMS over everything else, as sha256sum -c reads it.
func (r *release) checksums(context.Context) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		sum, err := digest(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		b.WriteString(sum + "  " + e.Name() + "\n")
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
