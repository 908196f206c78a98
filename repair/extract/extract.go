package extract

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// Format is the output form of an extract.
type Format string

// The formats. Put and Txn are shell scripts that call etcdctl.
const (
	JSONL  Format = "jsonl"
	Put    Format = "put"
	Txn    Format = "txn"
	YAML   Format = "yaml"
	Backup Format = "backup"
	// Cluster writes into a running cluster; see ToCluster.
	Cluster Format = "cluster"
)

// Formats lists the formats that are written to a file or folder.
func Formats() []string {
	return []string{string(JSONL), string(Put), string(Txn), string(YAML), string(Backup)}
}

// Known reports whether f is a format of a file or folder.
func (f Format) Known() bool { return slices.Contains(Formats(), string(f)) }

// carriesLeases reports whether the format keeps lease IDs as data, even if the lease does not exist.
func (f Format) carriesLeases() bool { return f == JSONL }

// LeaseMode says how leases of selected keys are handled.
type LeaseMode string

// The lease modes. Grant grants each lease again with its stored TTL, under the same ID if the format allows it. Detach
// writes the keys without a lease, so that they do not expire. Skip leaves such keys out.
const (
	LeaseGrant  LeaseMode = "grant"
	LeaseDetach LeaseMode = "detach"
	LeaseSkip   LeaseMode = "skip"
)

// Options say what to extract and in which form.
type Options struct {
	Select Selection
	// Rev is the revision of the state, 0 the current one.
	Rev int64
	// History extracts every record instead of the state. Deleted adds deleted keys with their last value.
	History, Deleted bool
	// Salvage adds records of damaged and lost pages.
	Salvage bool
	Leases  LeaseMode
	// OnlyIfAbsent writes only keys that the target does not have.
	OnlyIfAbsent bool
	Format       Format
	// Out is the file or folder to write; it must not exist. Stream, if set, is written instead.
	Out    string
	Stream io.Writer
	// Source and SourceKind name the source in the result.
	Source, SourceKind string
	// Inputs are all sources as the user named them: Out must be outside of them.
	Inputs []evidence.Spec
	// Memory bounds the memory for sorting, in bytes; 0 means 48 MiB. The rest goes to scratch.
	Memory int
}

// sink receives records one by one. close is called once, with the error of the extract or nil.
type sink interface {
	put(rec *Record) error
	close(err error) error
}

// Run extracts from the database file at path. If it fails, it removes Options.Out.
func Run(ctx context.Context, path string, o Options) (*Result, error) {
	if err := o.Valid(); err != nil {
		return nil, err
	}
	x, done, err := start(ctx, path, &o)
	if err != nil {
		return nil, err
	}
	defer done()
	if o.Format == Backup {
		err = x.backup(ctx)
	} else {
		err = x.toSink(ctx)
	}
	if err != nil {
		return nil, err
	}
	x.missing()
	if x.res.Empty() {
		x.res.Output = ""
	}
	return x.res, nil
}

// Valid returns an error for options that the format does not support.
func (o *Options) Valid() error {
	if o.Leases == "" {
		o.Leases = LeaseGrant
	}
	if o.Memory == 0 {
		o.Memory = spoolBudget
	}
	switch {
	case o.History && o.Deleted:
		return errors.New("a history holds deleted keys anyway")
	case o.History && o.Format != JSONL && o.Format != Backup:
		return fmt.Errorf("format %s holds one state; a history goes to jsonl or backup", o.Format)
	case o.History && o.Format == Backup && !o.Select.Everything():
		return errors.New("a backup with a history is of all keys: revisions without records would look like lost ones")
	case o.Deleted && o.Format == Backup:
		return errors.New("a backup keeps revisions, so it cannot contain a deleted key; use jsonl, put, txn or a " +
			"cluster")
	case o.OnlyIfAbsent && o.Format != Txn && o.Format != Cluster:
		return fmt.Errorf("format %s cannot check whether a key exists; txn and a cluster can", o.Format)
	case o.Salvage && o.Format == Backup && o.History:
		return errors.New("a history of salvaged records has holes; take jsonl")
	}
	return nil
}

// start opens the source and creates the scratch folder; done removes it.
func start(ctx context.Context, path string, o *Options) (x *reader, done func(), err error) {
	var out *datadir.Building
	if o.Out != "" && o.Stream == nil {
		if out, err = claim(o); err != nil {
			return nil, nil, err
		}
	}
	dir, err := scratch.Dir("", "etcd-medic-extract-")
	if err != nil {
		abandon(out)
		return nil, nil, err
	}
	x = &reader{o: o, dir: dir, out: out, found: map[string]bool{}, leases: map[int64]int64{}, used: map[int64]bool{},
		res: &Result{SchemaVersion: SchemaVersion, Source: o.Source, SourceKind: o.SourceKind, Format: string(o.Format),
			Output: o.Out,
			Leases: LeaseUse{Handling: string(o.Leases)}, LeftOut: []LeftOut{}, Notes: []string{},
			Lost: Lost{Damage: []Damage{}, NoValue: []check.Bytes{}, NotFound: []check.Bytes{}}}}
	done = func() {
		if x.db != nil {
			_ = x.db.Close()
		}
		_ = scratch.Remove(dir)
		abandon(out)
	}
	if err := x.open(ctx, path); err != nil {
		done()
		return nil, nil, err
	}
	return x, done, nil
}

// claim reserves the new path, so that no second run writes there.
func claim(o *Options) (*datadir.Building, error) {
	if err := datadir.Outside(o.Out, o.Inputs...); err != nil {
		return nil, err
	}
	out, err := datadir.Begin(o.Out)
	if errors.Is(err, datadir.ErrExists) {
		return nil, refuse("%s exists; an extract is only written to new paths", o.Out)
	}
	return out, err
}

func abandon(out *datadir.Building) {
	if out != nil {
		out.Abandon()
	}
}

// toSink streams the selected records into the chosen form.
func (x *reader) toSink(ctx context.Context) error {
	s, err := x.newSink()
	if err != nil {
		return err
	}
	walk := x.live
	if x.o.History {
		walk = x.history
	}
	err = walk(ctx, s.put)
	if err == nil && x.res.Empty() {
		err = errNothing
	}
	if err = s.close(err); errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// errNothing prevents an empty output file.
var errNothing = errors.New("nothing was selected")

func (x *reader) newSink() (sink, error) {
	if x.o.Format == YAML {
		return newFolder(x)
	}
	f, err := newFile(x)
	if err != nil {
		return nil, err
	}
	switch x.o.Format {
	case JSONL:
		return &jsonLines{file: f, x: x}, nil
	case Put:
		return newPutScript(f, x), nil
	case Txn:
		return newTxnScript(f, x), nil
	}
	return nil, errors.Join(fmt.Errorf("%q is not a format", x.o.Format), f.close(errNothing))
}

// file is an output that gets its name only when it is complete.
type file struct {
	*bufio.Writer
	f   *os.File
	out *datadir.Building
}

// resultName is the name of the file that becomes the result.
const resultName = "result"

func newFile(x *reader) (*file, error) {
	if x.o.Stream != nil {
		return &file{Writer: bufio.NewWriterSize(x.o.Stream, 256<<10)}, nil
	}
	f, err := os.OpenFile(filepath.Join(x.out.Path, resultName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &file{Writer: bufio.NewWriterSize(f, 256<<10), f: f, out: x.out}, nil
}

func (f *file) close(err error) error {
	if err == nil {
		err = f.Flush()
	}
	if f.f == nil {
		return err
	}
	if err == nil {
		err = f.f.Sync()
	}
	if err = errors.Join(err, f.f.Close()); err != nil {
		return err
	}
	return f.out.CommitFile(resultName)
}
