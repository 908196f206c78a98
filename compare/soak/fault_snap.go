package soak

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/server/v3/etcdserver/api/snap/snappb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/release"
)

// snapFaults rewrite the newest .snap file with a checksum that fits, or put another in its place.
var snapFaults = []Fault{
	{Name: "snap-index", Apply: rewriteSnap("index",
		func(s *raftpb.Snapshot) bool { s.Metadata.Index++; return true })},
	{Name: "snap-term", Apply: rewriteSnap("term", func(s *raftpb.Snapshot) bool { s.Metadata.Term++; return true })},
	{Name: "snap-voter", Apply: rewriteSnap("voters", func(s *raftpb.Snapshot) bool {
		s.Metadata.ConfState.Voters = append(s.Metadata.ConfState.Voters, 0x7e57ab1e)
		return true
	})},
	{Name: "snap-store", Not: release.SnapFileUnused, Apply: unlessMade(rewriteSnap("v2 store",
		func(s *raftpb.Snapshot) bool {
			b := bytes.Replace(s.Data, []byte(`http://127.`), []byte(`http://128.`), 1)
			changed := !bytes.Equal(b, s.Data)
			s.Data = b
			return changed
		}))},
	{Name: "snap-older-content", Apply: olderSnap},
	{Name: "snap-of-nothing", Apply: orphanSnap},
	{Name: "snap-empty", Apply: emptySnap},
}

func readSnap(file string) (*raftpb.Snapshot, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var outer snappb.Snapshot
	if err := outer.Unmarshal(b); err != nil {
		return nil, err
	}
	s := &raftpb.Snapshot{}
	return s, s.Unmarshal(outer.Data)
}

func writeSnap(file string, s *raftpb.Snapshot) error {
	data, err := s.Marshal()
	if err != nil {
		return err
	}
	b, err := (&snappb.Snapshot{Crc: crc32.Update(0, castagnoli, data), Data: data}).Marshal()
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// newestSnapFile returns the path of the newest whole .snap file, errNotHere if there is none. A killed server may have
// left a newer one that is cut short.
func newestSnapFile(dir string) (string, error) {
	files, err := snapFiles(dir)
	if err != nil {
		return "", err
	}
	for _, file := range slices.Backward(files) {
		if _, err := readSnap(file); err == nil {
			return file, nil
		}
	}
	return "", errNotHere
}

// snapRead reports whether servers of the release read .snap files at a start.
func (f *Victim) snapRead() bool { return !release.Of(f.Line).Has(release.SnapFileUnused).Certain() }

// snapEffect is that of an altered .snap file. Servers do not use one that the log does not name, as a server leaves it
// that ends between the two.
func (f *Victim) snapEffect(file, what string) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	e := &Effect{What: what, Alone: f.snapRead(), Open: !f.snapRead(), MayShareBest: true, Classes: snapClasses}
	if !holdsSnapshotRecord(segs, snapIndex(file)) {
		e.What += ", and the log does not name it"
		e.Alone, e.Open, e.Inconclusive = false, true, true
	}
	return e, nil
}

func rewriteSnap(what string, alter func(*raftpb.Snapshot) bool) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		file, err := newestSnapFile(f.Dir)
		if err != nil {
			return nil, err
		}
		s, err := readSnap(file)
		if err != nil {
			return nil, err
		}
		if !alter(s) {
			return nil, errNotHere
		}
		e, err := f.snapEffect(file, fmt.Sprintf("the %s in %s altered", what, filepath.Base(file)))
		if err != nil {
			return nil, err
		}
		e.Classes = append([]string{"membership", "latent-divergence"}, snapClasses...)
		return e, writeSnap(file, s)
	}
}

// unlessMade: releases that make the v2 store of bucket members do not read it, so a warning is enough.
func unlessMade(apply func(*Victim) (*Effect, error)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		e, err := apply(f)
		if err == nil && release.Of(f.Line).Has(release.V2StoreKept).Excluded() {
			e.Alone, e.Open = false, true
		}
		return e, err
	}
}

// olderSnap puts the content of an older .snap file in the place of the newest.
func olderSnap(f *Victim) (*Effect, error) {
	files, err := snapFiles(f.Dir)
	if err != nil {
		return nil, err
	}
	if len(files) < 2 {
		return nil, errNotHere
	}
	from, to := files[len(files)-2], files[len(files)-1]
	e, err := f.snapEffect(to, fmt.Sprintf("%s holds %s", filepath.Base(to), filepath.Base(from)))
	if err != nil {
		return nil, err
	}
	return e, replace(to, from)
}

// orphanSnap leaves a .snap file that the log does not name, as a server that ends between the two does: no server uses
// it.
func orphanSnap(f *Victim) (*Effect, error) {
	newest, err := newestSnapFile(f.Dir)
	if err != nil {
		return nil, err
	}
	s, err := readSnap(newest)
	if err != nil {
		return nil, err
	}
	_, end := logBounds(f.Dir)
	if s.Metadata.Index >= end {
		return nil, errNotHere
	}
	s.Metadata.Index = end
	file := filepath.Join(filepath.Dir(newest), fmt.Sprintf("%016x-%016x.snap", s.Metadata.Term, end))
	return &Effect{What: filepath.Base(file) + " added, which the log does not name", Open: true, MayShareBest: true,
		Inconclusive: true}, writeSnap(file, s)
}

// emptySnap empties the newest .snap file.
func emptySnap(f *Victim) (*Effect, error) {
	file, err := newestSnapFile(f.Dir)
	if err != nil {
		return nil, err
	}
	e, err := f.snapEffect(file, filepath.Base(file)+" is empty")
	if err != nil {
		return nil, err
	}
	return e, os.Truncate(file, 0)
}
