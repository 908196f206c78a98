package locate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// Unpacked are sources without compression.
type Unpacked struct {
	Specs []evidence.Spec
	files []*Opened
	found []*Found
}

// Close removes scratch.
func (u *Unpacked) Close() error {
	var errs []error
	for _, f := range u.files {
		errs = append(errs, f.Close())
	}
	for _, f := range u.found {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Unpack unpacks sources that are compressed, or archives of backups, in any form that Find accepts. It returns all
// other sources unchanged, including archives of data dirs and sources that cannot be unpacked. It returns an error
// only if ctx ends.
func Unpack(ctx context.Context, specs []evidence.Spec, o Options) (*Unpacked, error) {
	u := &Unpacked{}
	for _, s := range specs {
		plain, err := u.one(ctx, s, o)
		if err != nil {
			return nil, errors.Join(err, u.Close())
		}
		u.Specs = append(u.Specs, plain...)
	}
	return u, nil
}

func (u *Unpacked) one(ctx context.Context, s evidence.Spec, o Options) ([]evidence.Spec, error) {
	same := []evidence.Spec{s}
	if st, err := os.Stat(s.Where); evidence.IsEndpoint(s.Where) || err != nil || !st.Mode().IsRegular() {
		return same, nil
	}
	found, err := Find(ctx, []evidence.Spec{s}, o)
	if err != nil {
		return nil, err
	}
	u.found = append(u.found, found)
	if len(found.Items) == 0 || slices.ContainsFunc(found.Items,
		func(it *Item) bool { return it.Err != nil || !it.packed || ofDataDir(it) }) {
		return same, nil
	}
	var out []evidence.Spec
	for _, it := range found.Items {
		file, err := it.Open(ctx, o.Scratch)
		if err == nil {
			u.files = append(u.files, file)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return same, nil
		}
		out = append(out, evidence.Spec{Name: it.Label, Where: file.Path})
	}
	return out, nil
}

// ofDataDir reports whether the database is in an archive of a whole data dir.
func ofDataDir(it *Item) bool {
	return it.archive == isTar && strings.HasSuffix(filepath.ToSlash(it.Shown), "snap/db")
}
