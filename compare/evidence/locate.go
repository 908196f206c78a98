package evidence

import (
	"context"

	"github.com/etcd-medic/etcd-medic/internal/redact"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// Parts are where the parts of one source lie; absent parts are empty. It is for commands that read one part alone and
// have no use for the facts that Open gathers.
type Parts struct {
	Name string
	Kind Kind
	// WAL and Snap are folders, SnapFile and DB files.
	WAL, Snap, SnapFile, DB string
	scratch                 []string
	manifest                *Manifest
	archives                []File
}

// Locate finds out what a source is without reading more than a few bytes of it. An archive is unpacked into scratch,
// which Close removes. A folder that holds several sources is a SourceError.
func Locate(ctx context.Context, spec Spec) (*Parts, error) { return LocateWith(ctx, spec, Access{}) }

// LocateWith is Locate for sources that may be running members: their snapshot is streamed into scratch with the access
// given.
func LocateWith(ctx context.Context, spec Spec, access Access) (*Parts, error) {
	s := &Set{access: access}
	sources, err := s.expand(ctx, []Spec{spec})
	if err == nil && len(sources) == 0 {
		err = s.firstError()
	}
	if err == nil && len(sources) > 1 {
		err = &SourceError{Where: spec.Where, Found: "several sources", Expected: "one of them"}
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	nameSources(sources)
	l := sources[0].layout
	listed, err := listFiles(ctx, l)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return &Parts{Name: sources[0].Name, Kind: sources[0].Kind, WAL: l.wal, Snap: l.snap, SnapFile: l.snapFile,
		DB: l.db, scratch: s.scratch,
		manifest: listed, archives: s.archives}, nil
}

// Redact returns what makes the digests that stand for values of the source. It is for parts that Locate found.
func (p *Parts) Redact(ctx context.Context) (*redact.Key, error) {
	if p.manifest == nil {
		return nil, nil //nolint:nilnil // the set of an opened source has the key
	}
	return redactKey(ctx, p.manifest)
}

// Unchanged proves that the source did not change since Locate; else the error is a *ChangedError. Of the parts of an
// opened source its set tells.
func (p *Parts) Unchanged(ctx context.Context) error {
	if p.manifest != nil {
		if err := p.manifest.Unchanged(ctx); err != nil {
			return err
		}
	}
	return unchangedArchives(p.archives)
}

// Close removes the scratch of unpacked archives.
func (p *Parts) Close() error {
	var err error
	for _, d := range p.scratch {
		if e := scratch.Remove(d); e != nil {
			err = e
		}
	}
	return err
}

// Parts are where the parts of an opened source lie, those of an unpacked archive or of a streamed endpoint in scratch
// until the set is closed: for what copies them. Closing these Parts does nothing.
func (s *Source) Parts() *Parts {
	l := s.layout
	return &Parts{Name: s.Name, Kind: s.Kind, WAL: l.wal, Snap: l.snap, SnapFile: l.snapFile, DB: l.db}
}
