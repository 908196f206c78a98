package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/internal/tarzst"
)

// Bundle is the content of a bundle that is shown again.
type Bundle struct {
	Info Info
	// Screen and Full are the report as text, Diagnosis is the document of diagnose.
	Screen, Full []byte
	Diagnosis    json.RawMessage
}

// limits bound a bundle: a page of 20 MB, a document of the same size and the rest.
var limits = tarzst.Limits{Files: 2000, Bytes: 512 << 20}

// errOther says that an archive is not a bundle.
var errOther = errors.New("not a bundle")

// Open reads a bundle. It returns nil without an error if the file is not a bundle.
func Open(ctx context.Context, file string) (*Bundle, error) {
	if !archive.IsArchive(file) {
		return nil, nil
	}
	f, size, err := regular.Open(file)
	if err != nil {
		return nil, nil //nolint:nilerror // reading it as a source reports the error
	}
	defer func() { _ = f.Close() }()
	b, first := &Bundle{}, true
	_, err = tarzst.Read(ctx, io.LimitReader(f, size), limits, func(name string, _ int64, r io.Reader) error {
		if first && name != infoName {
			return errOther
		}
		first = false
		return b.keep(name, r)
	})
	switch {
	case err == nil:
		return b, nil
	case first && ctx.Err() == nil:
		return nil, nil // not a tar.zst, or one of data dirs
	}
	return nil, fmt.Errorf("%s: %w", file, err)
}

// keep stores a file that is shown again.
func (b *Bundle) keep(name string, r io.Reader) error {
	switch name {
	case infoName, textName, fullName, jsonName:
	default:
		return nil
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	switch name {
	case textName:
		b.Screen = raw
	case fullName:
		b.Full = raw
	case infoName:
		if err = json.Unmarshal(raw, &b.Info); err == nil && b.Info.Format != infoFormat {
			err = fmt.Errorf("the bundle has format %d, this program reads %d", b.Info.Format, infoFormat)
		}
	default:
		var doc struct {
			Report json.RawMessage `json:"report"`
		}
		if err = json.Unmarshal(raw, &doc); err == nil {
			b.Diagnosis = doc.Report
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Indented returns the document of diagnose as -w json prints it.
func (b *Bundle) Indented() ([]byte, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, b.Diagnosis, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// Report returns the part of the report that decides the exit code.
func (b *Bundle) Report() (*compare.Report, error) {
	var doc struct {
		Sources []struct {
			Error string `json:"error"`
		} `json:"sources"`
		Verdict struct {
			Health check.Health `json:"healthy"`
		} `json:"verdict"`
		Findings []struct {
			Severity check.Severity `json:"severity"`
		} `json:"findings"`
		Unchanged bool `json:"inputsUnchanged"`
	}
	if err := json.Unmarshal(b.Diagnosis, &doc); err != nil {
		return nil, err
	}
	r := &compare.Report{Verdict: compare.Verdict{Health: doc.Verdict.Health}, InputsUnchanged: doc.Unchanged}
	for _, s := range doc.Sources {
		r.Sources = append(r.Sources, compare.Source{Error: s.Error})
	}
	for _, f := range doc.Findings {
		r.Findings = append(r.Findings, check.Finding{Severity: f.Severity})
	}
	return r, nil
}
