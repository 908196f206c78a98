package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/folder"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/extract"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// OnlyHeld is what a removed member held when it stopped and the best member does not hold. It includes writes that it
// acknowledged after its snapshot.
type OnlyHeld struct {
	Member string `json:"member"`
	// Dir is the data dir that was read, "" when it could not be read from here.
	Dir string `json:"dir,omitempty"`
	// Keys counts the keys, KeyNames are the first of them. Script is the shell script that puts them.
	Keys     int           `json:"keys"`
	KeyNames []check.Bytes `json:"keyNames,omitempty"`
	Script   string        `json:"script,omitempty"`
	// Unknown says what could not be compared, and why. Command compares by hand.
	Unknown string `json:"unknown,omitempty"`
	Command string `json:"command,omitempty"`
	// CommandArgs is the command as a list.
	CommandArgs shell.Command `json:"commandArgs,omitzero"`
}

// onlyNote is its form in the journal, because the output form of keys cannot be read back.
type onlyNote struct {
	OnlyHeld
	Names [][]byte `json:"names"`
}

// held is the last state of a key that a member changed since its copy was made.
type held struct {
	deleted bool
	value   []byte
	lease   int64
}

// heldBytes bounds how much of the changes of one member is kept in memory.
const heldBytes = 256 << 20

// leftDirs finds the old data dirs of members that left, and notes what only they held.
type leftDirs struct{ *cluster }

// oldDir reads what a stopped member held.
type oldDir struct {
	*cluster
	m     *plan.Member
	known map[change]int32
	h     *history
	keys  map[string]held
	bytes int
	// doubts are reasons why the result may be incomplete.
	doubts []string
}

// findOldDir returns the member's old data dir if it can be read from here. It may be at its path on the host, under
// the name that our commands give it when they move it aside, or where a hook has put a copy. Only a dir with the
// member's ID counts, which its log has: inside, or where the server has its --wal-dir.
func (ld *leftDirs) findOldDir(ctx context.Context, m *plan.Member, places []string) (string, *evidence.Set) {
	return ld.findDir(ctx, m, places, isOldDir(m))
}

// findDir returns the first of the places that holds a data dir which fits.
func (ld *leftDirs) findDir(ctx context.Context, m *plan.Member, places []string, fits func(*evidence.Member) bool) (
	string, *evidence.Set,
) {
	for _, dir := range places {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			continue
		}
		for _, wal := range append([]string{""}, ld.oldWALs(m, dir)...) {
			set, err := evidence.Open(ctx, []evidence.Spec{{Name: m.Name, Where: dir, WALDir: wal}},
				evidence.Options{})
			if err != nil {
				continue
			}
			if len(set.Members) == 1 && fits(set.Members[0]) {
				return dir, set
			}
			_ = set.Close() // only read
		}
	}
	return "", nil
}

// oldWALs are the places where the log of a member with --wal-dir may be readable from here, for one place of its data
// dir. A log that was moved is not that of a data dir in its place, which may be the new one.
func (ld *leftDirs) oldWALs(m *plan.Member, dir string) []string {
	wal := ""
	if ld.live != nil {
		wal = givenFor(ld.live.WALDirs, m)
	}
	switch {
	case wal == "":
		return nil
	case dir == ld.live.dataDir(m):
		return []string{wal}
	}
	return append(movedNextTo(wal), wal)
}

// movedNextTo lists the folders next to dir whose names begin with its name, as those of folders that were moved aside.
func movedNextTo(dir string) []string {
	// one that cannot be listed has none that can be read
	moved, _ := folder.Match(filepath.Dir(dir), "*")
	return slices.DeleteFunc(moved, func(x string) bool {
		rest, ok := strings.CutPrefix(filepath.Base(x), filepath.Base(dir))
		return !ok || rest == ""
	})
}

// oldDirs are the places where the member's old data dir may be readable from here: while it is in its place, and once
// it was moved.
func (ld *leftDirs) oldDirs(m *plan.Member) (before, after []string) {
	if ld.live == nil {
		return nil, nil
	}
	if dir := ld.live.dataDir(m); dir != "" {
		before = append(before, dir)
		after = slices.Concat(movedNextTo(dir), []string{dir})
	}
	return before, append([]string{AsidePath(ld.planFile(), m)}, after...)
}

// AsidePath is where a hook may put a copy of a member's old data dir, next to the plan, so that its unique content can
// be found.
func AsidePath(plan string, m *plan.Member) string {
	return absolute(plan) + ".aside/" + shell.FileName(m.ServerName()) + "-" + m.ID.String()
}

// keepOnly compares the content of a stopped member with that of the best member, once. It never fails the repair: the
// result says what could not be done.
func (ld *leftDirs) keepOnly(ctx context.Context, s *plan.Step, m *plan.Member, places []string, last bool) error {
	if ld.live == nil || !leaves(m) || ld.j.value("only:"+m.Name) != "" {
		return nil
	}
	byHand := ld.compareCommand(m)
	res := &OnlyHeld{Member: m.Name, Command: byHand.String(), CommandArgs: byHand}
	dir, set := ld.findOldDir(ctx, m, places)
	switch {
	case set != nil:
		res.Dir = dir
		err := ld.only(ctx, m, set.Members[0], res)
		_ = set.Close() // only read
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			res.Unknown = strings.TrimPrefix(res.Unknown+"; "+err.Error(), "; ")
		}
	case ctx.Err() != nil:
		return ctx.Err() // it may be there
	case !last:
		return nil // it is searched again after the move
	default:
		res.Unknown = "its old data dir cannot be read from here"
	}
	return ld.noteOnly(s, res)
}

// noteOnly writes the result to the journal.
func (ld *leftDirs) noteOnly(s *plan.Step, res *OnlyHeld) error {
	kept := onlyNote{OnlyHeld: *res}
	for _, k := range res.KeyNames {
		kept.Names = append(kept.Names, k)
	}
	kept.KeyNames = nil
	b, err := json.Marshal(&kept)
	if err != nil {
		return err
	}
	return ld.note(s.ID, "only:"+res.Member, string(b))
}

// keepRemoved compares the content of a member that is removed and does not come back. Its server ends when it learns
// that it was removed. If it continues to run, it is not compared, and the result says so.
func (ld *leftDirs) keepRemoved(ctx context.Context, s *plan.Step, m *plan.Member) error {
	if ld.live == nil || m.Action != plan.Remove || m.Zombie() || m.Source == "" && len(m.ClientURLs) == 0 ||
		ld.j.value("only:"+m.Name) != "" {
		return nil
	}
	for end := time.Now().Add(min(ld.limits.step, removedEnds)); !ld.host.down(ctx, m); {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(end) {
			cmd := ld.compareCommand(m)
			return ld.noteOnly(s, &OnlyHeld{Member: m.Name, Unknown: "its server still runs", Command: cmd.String(),
				CommandArgs: cmd})
		}
		select {
		case <-ctx.Done():
		case <-time.After(ld.limits.poll):
		}
	}
	before, after := ld.oldDirs(m)
	return ld.keepOnly(ctx, s, m, append(before, after...), true)
}

// removedEnds is how long a server may take to end once it was removed.
const removedEnds = 30 * time.Second

// compareCommand is the command that compares the member's snapshot with its old data dir.
func (ld *leftDirs) compareCommand(m *plan.Member) shell.Command {
	from := ld.backup
	if p := savePath(ld.backup, m); ld.j.value("file:"+filepath.Base(p)) != "" {
		from = p
	}
	return shell.Format("etcd-medic compare --as-script {} {}", shell.Operand(from),
		shell.FillFor("COPY_OF_OLD_DATA_DIR_OF", m.Name))
}

// only lists and saves the keys that the member changed since its copy in a way in which the best member did not.
func (ld *leftDirs) only(ctx context.Context, m *plan.Member, e *evidence.Member, res *OnlyHeld) error {
	if !e.HasDB() {
		return errors.New("its database cannot be read")
	}
	o := &oldDir{cluster: ld.cluster, m: m, known: map[change]int32{}, h: newHistory(), keys: map[string]held{}}
	timed, cancel := context.WithTimeout(ctx, driftTime)
	defer cancel()
	if err := o.readBest(timed); err != nil {
		return fmt.Errorf("the changes of %s could not be read: %w", ld.best().Name, err)
	}
	if err := o.readDB(e); err != nil {
		o.doubts = append(o.doubts, err.Error())
	}
	if err := o.readLog(timed, e); err != nil {
		o.doubts = append(o.doubts, "its log above its database could not be read: "+err.Error())
	}
	keys, err := o.differing(timed)
	if err != nil {
		return err
	}
	res.Keys = len(keys)
	for _, k := range keys[:min(len(keys), driftShown)] {
		res.KeyNames = append(res.KeyNames, check.Bytes(k))
	}
	if len(keys) > 0 {
		res.Script, err = o.save(e, keys)
	}
	res.Unknown = strings.Join(o.doubts, "; ") // save adds to them
	return err
}

// readBest notes what the best member changed, so that changes on both do not count. Its copy may be the newer one;
// each entry raises the revision by one at most.
func (o *oldDir) readBest(ctx context.Context) error {
	goal, err := o.goal(ctx)
	if err != nil {
		return err
	}
	from, best := int64(1), o.plan.Best
	if o.m.Revision > 0 {
		from = best.Revision + 1
		if best.AppliedIndex > o.m.Applied {
			from = max(1, from-int64(best.AppliedIndex-o.m.Applied))
		}
	}
	gap, err := o.changes(ctx, o.best(), from, goal.Header.GetRevision(), func(e *clientv3.Event) error {
		if len(o.known) >= driftEvents {
			return errTooMany
		}
		o.known[o.h.of(e)]++
		return nil
	})
	if gap > 0 {
		o.doubts = append(o.doubts, fmt.Sprintf("%s was compacted at revision %d: a key that both changed before "+
			"that may be listed", o.best().Name, gap))
	}
	return err
}

// readDB reads the records that the member wrote since its copy.
func (o *oldDir) readDB(e *evidence.Member) error {
	if c := e.DB.Meta.CompactRev(); c > o.m.Revision {
		o.doubts = append(o.doubts, fmt.Sprintf("its database is compacted at revision %d: deletes up to there "+
			"cannot be seen", c))
	}
	bad := 0
	for rev, err := range e.DB.Handle.RevisionsFrom(dumpdb.Rev{Main: o.m.Revision + 1}) {
		if err != nil || rev.Err != nil {
			bad++
			continue
		}
		if err := o.take(string(rev.KV.Key), held{deleted: rev.Tombstone, value: slices.Clone(rev.KV.Value),
			lease: rev.KV.Lease}); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%s of its database cannot be read", plural.Of(bad, "place", "places"))
	}
	return nil
}

// take notes a change unless the best member made it too.
func (o *oldDir) take(key string, st held) error {
	ev := &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(key), Value: st.value}}
	if st.deleted {
		ev.Type, ev.Kv.Value = clientv3.EventTypeDelete, nil
	}
	if c := o.h.of(ev); o.known[c] > 0 {
		o.known[c]--
		delete(o.keys, key) // the best member has this newer state too
		return nil
	}
	if o.bytes += len(key) + len(st.value); o.bytes > heldBytes || len(o.keys) >= driftEvents {
		return fmt.Errorf("it changed more than %d MiB, or more than %d keys", heldBytes>>20, driftEvents)
	}
	o.keys[key] = st
	return nil
}

// readLog executes the entries above the member's database: it may have acknowledged them, and ended before they were
// in the database on disk.
func (o *oldDir) readLog(ctx context.Context, e *evidence.Member) error {
	if !e.HasLog() {
		return errors.New("it has none")
	}
	opts := replay.MachineOptions{Version: release.AnyOf(o.plan.Cluster.Minor), Single: o.plan.Cluster.Voters == 1}
	var m *replay.Machine
	entries, unsure, auth := 0, 0, false
	for entry, err := range replay.Log(ctx, []*evidence.Member{e}) {
		if err != nil {
			return err
		}
		if entry.Index <= e.ConsistentIndex() {
			continue
		}
		if entry.Err != nil {
			unsure++
			continue
		}
		if m == nil {
			if m, err = replay.NewMachine(ctx, e.DB.Handle, opts); err != nil {
				return err
			}
		}
		st := m.Prepare(entry)
		_, changes := m.Apply(st)
		if !replay.WritesKeys(entry.Req.Kind) {
			auth = auth || entry.Req.Kind.ChangesAuth() && (entry.Index <= e.AppliedMax || !st.Sure)
			continue
		}
		if entries++; !st.Sure {
			unsure++
		}
		n, err := o.takeChanges(changes)
		if err != nil {
			return err
		}
		unsure += n
	}
	if auth {
		o.doubts = append(o.doubts, "its log above its database changes users or roles, and it is unknown whether "+
			"that took effect: later writes may have been refused, or not")
	}
	if unsure > 0 {
		o.doubts = append(o.doubts, fmt.Sprintf("the outcome of %d of %d writes in its log above its database is "+
			"unknown", unsure, max(entries, unsure)))
	}
	return nil
}

// takeChanges takes what an entry wrote. Those that have the value of another record, which the script cannot name, are
// counted only.
func (o *oldDir) takeChanges(changes []replay.Change) (unnamed int, err error) {
	for _, c := range changes {
		if c.From != (dumpdb.Rev{}) {
			unnamed++
			continue
		}
		if err := o.take(c.Key, held{deleted: c.Delete, value: slices.Clone(c.Value), lease: c.Lease}); err != nil {
			return unnamed, err
		}
	}
	return unnamed, nil
}

// differing keeps the keys whose last state on the member is not the present state on the best member.
func (o *oldDir) differing(ctx context.Context) ([]string, error) {
	var out []string
	for i, k := range slices.Sorted(maps.Keys(o.keys)) {
		if i >= driftKeys {
			o.doubts = append(o.doubts, fmt.Sprintf("it changed %d keys; the first %d were compared", len(o.keys),
				driftKeys))
			break
		}
		kv, err := o.serializable(ctx, o.best(), k)
		if err != nil {
			return nil, err
		}
		if st := o.keys[k]; st.deleted != (kv == nil) || kv != nil && string(kv.Value) != string(st.value) {
			out = append(out, k)
		}
	}
	return out, nil
}

// save writes the script. A script that is there already is not overwritten.
func (o *oldDir) save(e *evidence.Member, keys []string) (path string, err error) {
	f, path, err := newScript(strings.TrimSuffix(savePath(o.backup, o.m), filepath.Ext(o.backup)))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	ttls := map[int64]int64{}
	leases, err := e.DB.Handle.Leases()
	if err != nil {
		o.doubts = append(o.doubts, "its leases cannot be read")
	}
	for _, l := range leases {
		ttls[int64(l.ID)] = l.TTL
	}
	what := fmt.Sprintf("What only %s held when it was stopped. Look at each line: %s may hold a newer state of the "+
		"key.", o.m.Name, o.best().Name)
	s, err := extract.NewChangeScript(f, o.m.Name, what, e.CurrentRevision(), ttls)
	if err != nil {
		return "", err
	}
	for _, k := range keys {
		st := o.keys[k]
		if st.deleted {
			err = s.Delete([]byte(k))
		} else {
			err = s.Put([]byte(k), st.value, st.lease)
		}
		if err != nil {
			return "", err
		}
	}
	if n := len(s.Skipped); n > 0 {
		o.doubts = append(o.doubts, fmt.Sprintf("the script cannot contain %s with a zero byte",
			plural.Of(n, "key", "keys")))
	}
	if err := errors.Join(s.Close(), f.Sync()); err != nil {
		return "", err
	}
	return path, syncDir(filepath.Dir(path))
}

func newScript(base string) (f *os.File, path string, err error) {
	for i := 1; i < 100; i++ {
		path = base + ".only.sh"
		if i > 1 {
			path = fmt.Sprintf("%s.only.%d.sh", base, i)
		}
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, path, err
}

// Text says it in a sentence.
func (o *OnlyHeld) Text() string {
	var text string
	switch {
	case o.Dir == "":
		return fmt.Sprintf("what %s acknowledged between its snapshot and its stop was not compared: %s", o.Member,
			o.Unknown)
	case o.Keys > 0:
		text = fmt.Sprintf("only %s held %s when it was stopped: %s", o.Member, plural.Of(o.Keys, "key", "keys"),
			shown(&Drift{Unlisted: o.Keys, UnlistedKeys: o.KeyNames}))
	default:
		text = fmt.Sprintf("%s held nothing since its copy that the cluster does not hold", o.Member)
	}
	if o.Script != "" {
		text += "; saved as " + o.Script
	}
	if o.Unknown != "" {
		text += "; not all could be compared: " + o.Unknown
	}
	return text
}
