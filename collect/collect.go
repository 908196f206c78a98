package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Options say what to collect and how.
type Options struct {
	// DataDir is the data dir of the server, WALDir its --wal-dir if it has one. Name is the folder in the archive.
	DataDir, WALDir, Name string
	// Endpoints are client URLs, of which the first is used that answers as the member of the data dir. If there is
	// none, the database is copied from its file.
	Endpoints []string
	Access    evidence.Access
	// Dial, if set, connects to the member instead of Endpoints and Access.
	Dial func() (*clientv3.Client, error)
	// Out is a new file, or "-" for Stdout.
	Out    string
	Stdout io.Writer
	// Rate bounds reading, in bytes per second; 0 means no bound.
	Rate int64
	// Attempts bounds how often the copy is started; 0 means 3. To stdout it is 1.
	Attempts int
	// LogWait bounds the wait for the log to reach the database's consistent index; 0 means 10 seconds.
	LogWait  time.Duration
	Progress func(string)
	Version  string
}

const (
	defaultAttempts = 3
	defaultLogWait  = 10 * time.Second
	logPause        = 100 * time.Millisecond
)

func (o *Options) fill() error {
	if o.Attempts <= 0 {
		o.Attempts = defaultAttempts
	}
	if o.Out == "-" {
		o.Attempts = 1
	}
	if o.LogWait <= 0 {
		o.LogWait = defaultLogWait
	}
	abs, err := filepath.Abs(o.DataDir)
	if err != nil {
		return err
	}
	if o.Name == "" {
		o.Name = strings.TrimSuffix(filepath.Base(abs), ".etcd")
	}
	if o.Name == "." || o.Name == ".." || strings.ContainsAny(o.Name, "/\\\x00") {
		return &refusal.Error{Reason: fmt.Sprintf("%q cannot be the name of a folder", o.Name), Hint: "--name NAME"}
	}
	if o.Out == "-" {
		return nil
	}
	out, err := filepath.Abs(o.Out)
	if err != nil {
		return err
	}
	for _, dir := range []string{abs, o.WALDir} {
		if dir != "" && inside(out, dir) {
			return &refusal.Error{Reason: fmt.Sprintf("%s is inside %s", o.Out, dir),
				Hint: "choose a file outside of the data dir, ideally on another disk"}
		}
	}
	if _, err := os.Lstat(o.Out); err == nil {
		return &refusal.Error{Reason: o.Out + " already exists", Hint: "existing files are not overwritten: choose " +
			"another file"}
	}
	return nil
}

// inside resolves links, so that it also recognizes the data dir under another path.
func inside(file, dir string) bool {
	at, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		at = filepath.Dir(file)
	}
	if d, err := filepath.EvalSymlinks(dir); err == nil {
		dir = d
	}
	rel, err := filepath.Rel(dir, at)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Run makes the copy and returns its manifest.
func Run(ctx context.Context, o Options) (*Manifest, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	c := &collection{o: o, started: time.Now()}
	c.wal, c.snap, c.db = paths(o.DataDir, o.WALDir)
	if st, err := os.Stat(c.wal); err != nil || !st.IsDir() {
		return nil, &refusal.Error{Reason: fmt.Sprintf("%s does not contain a write-ahead log", c.wal),
			Hint: "--data-dir is the folder that contains member/, --wal-dir the folder of the log if it is elsewhere"}
	}
	if len(o.Endpoints) == 0 && o.Dial == nil {
		c.source = &file{path: c.db, scratch: c.scratch()}
	} else {
		s, err := connect(ctx, &o, c.wal)
		if err != nil {
			return nil, err
		}
		c.source = s
	}
	defer func() { _ = c.source.close() }()
	return c.run(ctx)
}

// run makes the copy and starts over while its parts do not belong together, up to Attempts times.
func (c *collection) run(ctx context.Context) (*Manifest, error) {
	var last error
	for n := range c.o.Attempts {
		m, err := c.attempt(ctx, n+1)
		if err == nil {
			return m, nil
		}
		var u *mismatchError
		if !errors.As(err, &u) {
			return nil, err
		}
		last = err
	}
	return nil, &UnprovenError{Attempts: c.o.Attempts, Last: last}
}

// collection is one run.
type collection struct {
	o             Options
	wal, snap, db string
	source        database
	started       time.Time
	pace          *pace
}

// scratch returns the folder for the raw copy of a database: that of the archive.
func (c *collection) scratch() string {
	if c.o.Out == "-" {
		return ""
	}
	return filepath.Dir(c.o.Out)
}

// attempt makes the whole copy once.
func (c *collection) attempt(ctx context.Context, n int) (m *Manifest, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends a stream that is no longer needed
	defer cancel()
	c.pace = &pace{ctx: ctx, rate: c.o.Rate, progress: c.o.Progress}
	h, err := openAll(c.wal, c.snap)
	if err != nil {
		return nil, err
	}
	defer h.close()
	out, err := c.create()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.end(err == nil)) }()
	w, err := newPacked(out)
	if err != nil {
		return nil, err
	}
	p := &parts{}
	if err := c.database(ctx, w, h, out, p); err != nil {
		w.Abandon()
		return nil, err
	}
	if m, err = c.rest(ctx, w, h, p, n); err != nil {
		w.Abandon()
		return nil, err
	}
	return m, w.Close()
}

// database copies the database and reads its consistent index from the stream.
func (c *collection) database(ctx context.Context, w *packed, h *openFiles, out *output, p *parts) error {
	r, size, end, err := c.source.begin(ctx)
	if errors.Is(err, errMoved) {
		return &mismatchError{err.Error()}
	}
	if err != nil {
		return err
	}
	if err := out.room(size + h.walBytes()); err != nil {
		return err
	}
	stop := h.watch(ctx)
	tap := &dbTap{}
	err = w.add(c.name("snap", "db"), size, time.Now(), io.TeeReader(c.pace.reader("database", size, r), tap))
	if e := stop(); err == nil {
		err = e
	}
	if err == nil {
		err = end()
	}
	if err != nil {
		return err
	}
	p.member, p.cluster = c.source.identity()
	if p.index, p.term, err = tap.Result(); err != nil {
		return &mismatchError{err.Error()}
	}
	return h.refresh()
}

func (c *collection) name(folder, file string) string {
	return path.Join(c.o.Name, "member", folder, file)
}

// rest copies the .snap files and the log, checks the copy and writes the manifest.
func (c *collection) rest(ctx context.Context, w *packed, h *openFiles, p *parts, n int) (*Manifest, error) {
	if err := c.snaps(w, h, p); err != nil {
		return nil, err
	}
	segs, err := c.readLog(ctx, h, p)
	if err != nil {
		return nil, err
	}
	segs, cut, err := endBefore(ctx, c.wal, segs, p)
	if err != nil {
		return nil, err
	}
	at, proven, err := p.prove()
	if err != nil {
		return nil, err
	}
	if err := c.segments(w, segs, p.log); err != nil {
		return nil, err
	}
	m := &Manifest{SchemaVersion: SchemaVersion, Version: c.o.Version, DataDir: c.o.DataDir, WALDir: c.wal,
		Started: c.started.UTC(), Finished: time.Now().UTC(), Attempts: n, MemberID: p.log.Metadata.MemberID,
		ClusterID:       p.log.Metadata.ClusterID,
		ConsistentIndex: p.index, Term: p.term, FirstIndex: at.first, LastIndex: p.log.LastIndex, Proven: proven,
		LeftOut: h.leftOut(), Notes: []string{}, Files: w.files}
	if cut != "" {
		m.Notes = append(m.Notes, cut)
	}
	m.Host, _ = os.Hostname()
	m.Endpoint, m.Server = c.source.server()
	if n := len(p.log.Damage); n > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("the log is copied unchanged, with damage in %s, the first: %.300s",
			plural.Of(n, "place", "places"), p.log.Damage[0].Error()))
	}
	for _, s := range p.snaps {
		if s.snap.Damage != nil {
			m.Notes = append(m.Notes, s.name+" is copied unchanged, with damage: "+s.snap.Damage.Error())
		}
	}
	if p.base(at) == "" {
		m.Notes = append(m.Notes, "the log continues none of the .snap files: a server does not start on this data "+
			"dir "+
			"without more")
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	b = shell.AppendSafe(nil, b, true)
	return m, w.add(path.Join(c.o.Name, ManifestName), int64(len(b)), time.Now(), bytes.NewReader(b))
}

// snaps copies the .snap files whose content the database includes.
func (c *collection) snaps(w *packed, h *openFiles, p *parts) error {
	all, err := h.snapFiles()
	if err != nil {
		return err
	}
	for _, s := range all {
		if index := max(s.snap.Index, s.snap.NameIndex); index > p.index {
			h.leave(s.name, fmt.Sprintf("newer than the database, which has applied %d", p.index))
			continue
		}
		if err := w.add(c.name("snap", s.name), s.size, modTime(s.file),
			io.NewSectionReader(s.file, 0, s.size)); err != nil {
			return err
		}
		p.snaps = append(p.snaps, s)
	}
	return nil
}

func modTime(f *os.File) time.Time {
	if st, err := f.Stat(); err == nil {
		return st.ModTime()
	}
	return time.Time{}
}

// readLog scans the log until it reaches the consistent index and ends with a complete record. The server writes a
// record before or shortly after it applies the entry. Damage that stays is not a write in progress, so it is copied
// unchanged.
func (c *collection) readLog(ctx context.Context, h *openFiles, p *parts) ([]segment, error) {
	until := time.Now().Add(c.o.LogWait)
	for {
		l, files, err := h.log()
		if err != nil {
			return nil, err
		}
		if p.log, err = l.Scan(ctx); err != nil {
			return nil, err
		}
		reached := p.log.Committed(p.index) >= p.index
		if reached && len(p.log.Damage) == 0 || time.Now().After(until) {
			return allOf(files), nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(logPause):
		}
		if err := h.refresh(); err != nil {
			return nil, err
		}
	}
}
