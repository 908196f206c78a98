package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

var oneMoment = described(Check{
	ID:    X05,
	Needs: NeedLog | NeedDB,
	Run:   runOneMoment,
})

func runOneMoment(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if f := in.provenance().tornCopy(m); f != nil {
			fs = append(fs, *f)
		}
	}
	return outcome(fs, "")
}

// tornCopy returns the finding about a source whose files were copied at different times, nil when nothing shows that.
func (pv *provenance) tornCopy(m *evidence.Member) *Finding {
	signs := pv.copySigns(m)
	if len(signs) == 1 && (!stoppedInOrder(m) || pv.endsOpen(m)) {
		if i := slices.IndexFunc(pv.Members, func(o *evidence.Member) bool {
			return o != m && o.ClusterID == m.ClusterID && !stoppedInOrder(o) && len(pv.copySigns(o)) > 1
		}); i >= 0 {
			signs = append(signs, pv.copySigns(pv.Members[i])...)
		}
	}
	if len(signs) < 2 {
		return nil
	}
	return &Finding{Kind: KindCopyTorn, Severity: Error, Class: ClassTornCopy, Members: []string{m.Label()},
		At:          At{Index: m.LastIndex() + 1},
		Title:       m.Label() + ": log and database were copied while the server wrote",
		Explanation: "the signs together speak for a copy of a running member; after a power loss they look the same",
		Evidence:    signs,
		Remedy:      []Remedy{copyAgain(m)}}
}

// copyAgain is how to get a copy of one moment: from the stopped server, or with this program while it runs.
func copyAgain(m *evidence.Member) Remedy {
	c := shell.Format("etcd-medic collect")
	how := "copy " + m.Label() + " again from its stopped server; or while it runs, on its host"
	if u := clientURL(m, nil); u != "" {
		c = c.With("--endpoints", u).Then(certificates(u))
		if m.DB.Auth.Enabled {
			how += " (with NAME:PASSWORD of root in ETCD_MEDIC_USER)"
		}
	}
	return Remedy{Text: how, Command: c.With("-o", filepath.Base(m.Label())+".tar.zst")}
}

// stoppedInOrder reports whether the server has removed its prepared segment, as it does at a regular stop.
func stoppedInOrder(m *evidence.Member) bool {
	return !m.HasWAL() || !m.WAL.Summary.NextPrepared()
}

// endsOpen reports whether the last segment of the log was closed for a next one that is not there. A copy whose list
// of files was made before the next segment began has neither that nor the prepared one.
func (pv *provenance) endsOpen(m *evidence.Member) bool {
	return m.HasWAL() && len(m.WAL.Summary.Segments) > 0 &&
		m.WAL.Summary.LastClosed(pv.Members.logs().segmentSize(m))
}

func isTornEnd(d *dumplog.DamageError) bool { return slices.Contains(tornKinds, d.Kind) }

// copySigns lists the signs of a copy of a running member.
func (pv *provenance) copySigns(m *evidence.Member) []Evidence {
	if !m.HasWAL() || m.DB == nil {
		return nil
	}
	signs := pageSigns(m)
	torn := slices.IndexFunc(m.WAL.Summary.Damage, isTornEnd)
	switch {
	case torn >= 0:
		d := m.WAL.Summary.Damage[torn]
		signs = append(signs, Evidence{Member: m.Label(), File: d.Segment, Offset: Int64(d.Offset), Length: d.Len,
			Field: string(d.Kind), Observed: d.Error(), Expected: "a complete record"})
	case m.HasDB() && m.ConsistentIndex() > m.LastIndex():
		last := m.LastIndex()
		signs = append(signs, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "meta",
			Key: Bytes("consistent_index"), Field: "consistent_index", Observed: fmt.Sprint(m.ConsistentIndex()),
			Expected: fmt.Sprintf("at most %d, the last index of the log", last), Show: showDB(m, "meta")})
		if !stoppedInOrder(m) && !pv.otherTimes(m) {
			signs = append(signs, preparedSegment(m))
		}
	case !stoppedInOrder(m) || pv.endsOpen(m):
		signs = append(signs, snapFolderSigns(m)...)
	}
	return signs
}

// snapFolderSigns are the signs of a snap folder that was copied before the log. A server commits its database, then
// writes the .snap file (up to 3.7), then the snapshot record; the copy has the record only. Where the file is there,
// its database was not older when the folder was read, so the database was put back.
func snapFolderSigns(m *evidence.Member) []Evidence {
	newest := m.NewestRecord()
	if !m.HasSnap() || !m.HasDB() || m.DB.KVDamaged || m.ConsistentIndex() == 0 ||
		m.ConsistentIndex() >= newest.Index ||
		hasSnapDB(m, newest.Index) || hasSnapFile(m, newest.Index) || Received(m, newest.Index) {
		return nil
	}
	signs := []Evidence{olderThanRecord(m, newest)}
	if m.Version.Has(release.SnapFileUnused).Excluded() || len(m.Snap.Files) > 0 { // 3.7 writes it, 3.8 does not
		signs = append(signs, Evidence{Member: m.Label(), File: fmt.Sprintf("*-%016x.snap", newest.Index),
			Field: "snapshot file", Observed: "absent", Expected: "the file that the snapshot record of the log names",
			Show: showLogAs(m, "--snaps")})
	}
	return signs
}

func hasSnapFile(m *evidence.Member, index uint64) bool {
	return slices.ContainsFunc(m.Snap.Files, func(f *dumplog.SnapFile) bool {
		return max(f.Index, f.NameIndex) == index
	})
}

// otherTimes reports whether something else explains a database that is ahead of its log: it was received, it is a
// backup, the log was created again, or a forced start cut the log.
func (pv *provenance) otherTimes(m *evidence.Member) bool {
	forced := len(m.WAL.Summary.ForceNewCluster) > 0
	return forced || len(m.WAL.Summary.Damage) > 0 || justInstalled(m) || pv.backupAsDatabase(m) != nil ||
		walBegunAnew(m) != nil || pv.wiped(m) != nil
}

func preparedSegment(m *evidence.Member) Evidence {
	e := Evidence{Member: m.Label(), Field: "prepared segment", Observed: "the server ran, or was killed",
		Expected: "none after a server has stopped in order"}
	for _, l := range m.WAL.Summary.LeftOvers {
		if strings.HasSuffix(l.Name, ".tmp") {
			e.File = l.Name
		}
	}
	return e
}

// pageSigns lists the first contradiction between pages, and the first page that only a later transaction can have
// written. That is a whole page at or above the high-water mark of the meta page: no transaction up to that meta page
// had as many pages.
func pageSigns(m *evidence.Member) (signs []Evidence) {
	sign := func(d *dumpdb.DamageError, field, expected string) {
		signs = append(signs, Evidence{Member: m.Label(), File: m.DB.File, Offset: Int64(d.Offset),
			Page: Uint64(d.Page), Field: field, Observed: d.Error(), Expected: expected})
	}
	for _, d := range m.DB.Damage {
		if slices.Contains(pageKinds, d.Kind) || inRoot(d) {
			sign(d, string(d.Kind), "pages of one transaction")
			break
		}
	}
	for _, d := range m.DB.Damage {
		if d.Kind == dumpdb.DamageOutOfFile && laterPage(m, d.Page) {
			sign(d, "page of a later transaction", fmt.Sprintf("a page below the high-water mark %d of the meta page",
				m.DB.Handle.Meta().HighWater))
			break
		}
	}
	return signs
}

func laterPage(m *evidence.Member, id uint64) bool {
	if m.DB.Handle == nil || id < m.DB.Handle.Meta().HighWater {
		return false
	}
	p, err := m.DB.Handle.Page(id)
	return err == nil && len(p.Damage) == 0 && len(p.Elements) > 0
}

// pageKinds are contradictions between pages, as a copy of a file that is written to shows them.
var pageKinds = []dumpdb.DamageKind{dumpdb.DamagePage, dumpdb.DamagePageID, dumpdb.DamageCycle, dumpdb.DamageDoubleUse,
	dumpdb.DamageKeyOrder, dumpdb.DamageTruncated, dumpdb.DamageOutOfFile, dumpdb.DamageEmpty, dumpdb.DamageReused}
