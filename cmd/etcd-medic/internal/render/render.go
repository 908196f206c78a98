// Package render writes results: tables for people, JSON for machines.
//
// It has only two forms of input. A report (compare.Report or compare.Comparison) is a whole document that exists
// before it is written. A stream is any number of rows (Row) that are written as they come, in constant memory. Each
// format is one file. Renderers never decide: other packages judge.
package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/internal/redact"
)

// Format is an output format of -w, --write-out.
type Format string

// The formats. Separate commands write HTML pages.
const (
	Table Format = "table"
	// Plain is one line per row, for commands that list rows: the default without a terminal.
	Plain  Format = "lines"
	Lines  Format = "fields"
	JSON   Format = "json"
	JSONL  Format = "jsonl"
	noHTML        = "html"
)

// Formats lists the formats in the order of the help text.
func Formats() []string { return []string{string(Table), string(Lines), string(JSON), string(JSONL)} }

// RowFormats lists the formats of commands that list rows.
func RowFormats() []string { return slices.Insert(Formats(), 1, string(Plain)) }

// ParseFormat reads the name of a format.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case Table, Lines, JSON, JSONL:
		return f, nil
	case "simple", "text": // etcdctl's names for the text format
		return Table, nil
	case noHTML:
		return "", fmt.Errorf("html is not a format of this command (want %s)", strings.Join(Formats(), ", "))
	}
	return "", fmt.Errorf("%q is not a format (want %s)", s, strings.Join(Formats(), ", "))
}

// Options say what may be shown and how wide it may get.
type Options struct {
	// Values shows values of keys; otherwise only length and digest.
	Values bool
	// Secrets shows passwords, password hashes and tokens.
	Secrets bool
	// Redact computes the digests of values; streams of rows need that of their sources.
	Redact *redact.Key
	// Width is where running text wraps, in columns; 0 means 100.
	Width int
	// Columns is true on a terminal: rows become tables that fit it.
	Columns bool
	// Color marks severities with ANSI colors.
	Color bool
	// Timeline adds the timeline to the page of a diagnosis; the machine formats always have it.
	Timeline bool
	// Lanes is drawn above the timeline; nil draws nothing.
	Lanes *timeline.Timeline
	// Full shows every finding, check and member in full; without it the text of a report is one screen.
	Full bool
	// Quiet shows only the line of the verdict.
	Quiet bool
	// MaxEvidence bounds the evidence rows of a finding in tables; 0 means 5.
	MaxEvidence int
}

func (o Options) width() int {
	switch {
	case o.Width == 0:
		return 100
	case o.Width < 80:
		return 80
	case o.Width > 120:
		return 120
	}
	return o.Width
}

func (o Options) maxEvidence() int {
	if o.MaxEvidence == 0 {
		return 5
	}
	return o.MaxEvidence
}
