package evidence

import (
	"context"

	"github.com/etcd-medic/etcd-medic/internal/redact"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// Parts are the paths of the parts of one source; absent parts are empty. They serve commands that read only one part
// and do not need the facts of Open.
type Parts struct {
	Name string
	Kind Kind
	// WAL and Snap are folders, SnapFile and DB files.
	WAL, Snap, SnapFile, DB string
	scratch                 []string
	manifest                *Manifest
	archives                []File
}

// Locate detects what a source is and reads only a few bytes of it. It unpacks an archive into scratch, which Close
// removes. It returns a SourceError for a folder with several sources.
func Locate(ctx context.Context, spec Spec) (*Parts, error) { return LocateWith(ctx, spec, Access{}) }

// LocateWith is Locate for sources that may be running members. It streams their snapshot into scratch, using access.
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
	s.nameSources(sources)
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

// Redact returns the key for digests of the source's values. Use it only for parts from Locate.
func (p *Parts) Redact(ctx context.Context) (*redact.Key, error) {
	if p.manifest == nil {
		return nil, nil //nolint:nilnil // the set of an opened source has the key
	}
	return redactKey(ctx, p.manifest)
}

// Unchanged verifies that the source has not changed since Locate; otherwise it returns a *ChangedError. For parts of
// an opened source, use Set.Unchanged.
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

// Parts returns the paths of an opened source, for copying. For an unpacked archive or a streamed endpoint they are in
// scratch and exist until the set is closed. Closing these Parts does nothing.
func (s *Source) Parts() *Parts {
	l := s.layout
	return &Parts{Name: s.Name, Kind: s.Kind, WAL: l.wal, Snap: l.snap, SnapFile: l.snapFile, DB: l.db}
}
