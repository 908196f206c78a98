// Package bundle writes and reads the archive that users attach to a bug. It contains the report in every form, the
// facts of each member and counts of its log, lines of servers' logs, and a manifest. Its input is already redacted.
package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render/htmlreport"
	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render/mdreport"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/internal/tarzst"
	"github.com/etcd-medic/etcd-medic/shell"
)

// The names of the files that every bundle has.
const (
	infoName   = "bundle.json"
	readmeName = "README.txt"
	pageName   = "report.html"
	textName   = "report.txt"
	fullName   = "report-full.txt"
	jsonName   = "report.json"
)

// Info is bundle.json, the first file of a bundle.
type Info struct {
	Format int `json:"format"`
	// Created is when the sources were read.
	Created time.Time    `json:"created"`
	Tool    compare.Tool `json:"tool"`
	// Keys says how keys are shown: clear, prefix or hashed.
	Keys    string   `json:"keys"`
	Sources []string `json:"sources"`
}

// infoFormat is the version of a bundle's layout.
const infoFormat = 1

// Input is the redacted content of a bundle.
type Input struct {
	Dossier *dossier.Dossier
	// Logs are counts of each source's log, by position of the source.
	Logs []*LogCounts
	// ServerLogs are the known lines of servers' logs by source; nil if they are left out.
	ServerLogs map[string]*serverlog.Journal
	Keys       string
	Created    time.Time
}

// File is one file of a bundle.
type File struct {
	Name string
	// What describes its content.
	What    string
	Content []byte
}

// Files returns the files of a bundle, in order.
func Files(in *Input) ([]File, error) {
	r := in.Dossier.Report
	info := Info{Format: infoFormat, Created: in.Created.UTC().Truncate(time.Second), Tool: r.Tool, Keys: in.Keys,
		Sources: []string{}}
	for i := range r.Sources {
		info.Sources = append(info.Sources, r.Sources[i].Name)
	}
	m := &maker{}
	m.add(infoName, "when and how this bundle was made", asJSON(info))
	m.add(readmeName, "what is in here", func(w io.Writer) error {
		_,
			err := io.WriteString(w, readme(&info, in.Dossier))
		return err
	})
	m.add(pageName, "the report as a page; open it in a browser",
		func(w io.Writer) error { return htmlreport.Write(w, in.Dossier) })
	m.add("report.md", "the report for an issue or a wiki",
		func(w io.Writer) error { return mdreport.Write(w, in.Dossier) })
	m.add(textName, "the report as one screen", text(r, false))
	m.add(fullName, "the report as text, in full", text(r, true))
	m.add(jsonName, "all of it for programs", func(w io.Writer) error { return render.Dossier(w, in.Dossier) })
	for i := range r.Members {
		f := &r.Members[i]
		dir := fmt.Sprintf("members/%02d-%s/", i+1, shell.FileName(f.Name))
		m.add(dir+"facts.json", "facts of "+f.Name, asJSON(f))
		if i < len(in.Logs) && in.Logs[i] != nil {
			m.add(dir+"log.json", "counts of the log of "+f.Name, asJSON(in.Logs[i]))
		}
		if j := in.ServerLogs[f.Name]; j != nil {
			m.add(dir+"server-log.jsonl", "known lines of the server's log", lines(j))
		}
	}
	return m.files, m.err
}

// maker collects files until the first error.
type maker struct {
	files []File
	err   error
}

func (m *maker) add(name, what string, write func(io.Writer) error) {
	if m.err != nil {
		return
	}
	var b bytes.Buffer
	if m.err = write(&b); m.err == nil {
		m.files = append(m.files, File{Name: name, What: what, Content: b.Bytes()})
	}
}

func asJSON(v any) func(io.Writer) error {
	return func(w io.Writer) error {
		enc := json.NewEncoder(render.SafeJSONWriter(w))
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
}

func text(r *compare.Report, full bool) func(io.Writer) error {
	return func(w io.Writer) error {
		return render.Diagnosis(w, render.Table, r, render.Options{Full: full, Timeline: full, MaxEvidence: 20})
	}
}

func lines(j *serverlog.Journal) func(io.Writer) error {
	return func(w io.Writer) error {
		enc := json.NewEncoder(render.SafeJSONWriter(w))
		for i := range j.Events {
			e := &j.Events[i]
			row := ServerLine{Line: e.Line, ID: e.ID, Index: e.Index, Term: e.Term, Revision: e.Revision,
				Problem: e.Problem, Text: e.Text}
			if !e.Time.IsZero() {
				row.Time = e.Time.UTC().Format(time.RFC3339Nano)
			}
			if err := enc.Encode(row); err != nil {
				return err
			}
		}
		return nil
	}
}

// ServerLine is one line of server-log.jsonl.
type ServerLine struct {
	Line     int    `json:"line"`
	Time     string `json:"time,omitempty"`
	ID       string `json:"id"`
	Index    uint64 `json:"index,omitempty"`
	Term     uint64 `json:"term,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Problem  bool   `json:"problem,omitempty"`
	Text     string `json:"text"`
}

// Write writes the files as one archive that ends with a manifest of their digests.
func Write(w io.Writer, files []File) error {
	out, err := tarzst.NewWriter(w, tarzst.Options{Kind: "report"})
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := out.Add(tarzst.Entry{Name: f.Name, Size: int64(len(f.Content)), Mode: 0o644},
			bytes.NewReader(f.Content)); err != nil {
			return err
		}
	}
	return out.Close()
}

func readme(info *Info, d *dossier.Dossier) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "A report of %s %s about %s, made %s.\n\n", info.Tool.Name, render.Safe(info.Tool.Version),
		render.Safe(strings.Join(info.Sources, ", ")), info.Created.Format(time.RFC3339))
	b.WriteString("Open report.html in a browser; it loads nothing. `etcd-medic diagnose` of this archive prints " +
		"report.txt again.\n")
	b.WriteString("report.json and members/*/*.json are for programs (docs/JSON.md). manifest.json has the sha256 of " +
		"every file.\n\n")
	b.WriteString(d.Redaction + "\n")
	return b.String()
}
