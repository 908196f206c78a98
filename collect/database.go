package collect

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// database is the source of the database. begin returns its bytes and their number. end reports whether they were one
// consistent state.
type database interface {
	begin(ctx context.Context) (r io.Reader, size int64, end func() error, err error)
	// identity returns the member that answered, server its endpoint and version; zero if no member was asked.
	identity() (member, cluster dumplog.ID)
	server() (endpoint, version string)
	close() error
}

// running reads the database from a running member.
type running struct {
	cli      *clientv3.Client
	endpoint string
	status   *clientv3.StatusResponse
}

// streamWindow is how many bytes of the database the server sends ahead.
const streamWindow = 256 << 10

// askTimeout bounds the first question to the member.
const askTimeout = 10 * time.Second

// connect returns the first endpoint that answers as the member of the log. What several endpoints lead to is asked
// before the copy; whether a single one leads to the right member is proven with it.
func connect(ctx context.Context, o *Options, wal string) (s *running, err error) {
	if o.Dial != nil {
		return ask(ctx, o.Dial, &o.Access, "")
	}
	var own *dumplog.Metadata
	if len(o.Endpoints) > 1 {
		l, err := dumplog.Open(wal)
		if err != nil {
			return nil, err
		}
		own = l.Identity()
	}
	access := o.Access
	access.Window = streamWindow
	err = access.FirstThatAnswers(ctx, o.Endpoints, func(e string) (err error) {
		dial := func() (*clientv3.Client, error) { return access.Dial(ctx, []string{e}) }
		if s, err = ask(ctx, dial, &access, e); err != nil || own == nil {
			return err
		}
		if m, c := s.identity(); m != own.MemberID || c != own.ClusterID {
			return errors.Join(otherMember(e, m, c, own), s.close())
		}
		return nil
	})
	var another *refusal.Error
	if err != nil && !errors.As(err, &another) {
		err = errors.Join(err, errors.New("if the server is stopped, --no-client copies its files"))
	}
	return s, err
}

// ask connects to a member and has it say who it is.
func ask(ctx context.Context, dial func() (*clientv3.Client, error), access *evidence.Access,
	endpoint string) (*running, error) {
	cli, err := dial()
	if err != nil {
		return nil, err
	}
	s := &running{cli: cli, endpoint: cmp.Or(endpoint, cli.Endpoints()[0])}
	if err := s.ask(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not answer (running? see --cacert, --cert, --key, "+
			"--user): %w", s.endpoint, access.Because(ctx, []string{s.endpoint}, err)), cli.Close())
	}
	return s, nil
}

func (s *running) ask(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s.status, err = s.cli.Status(ctx, s.cli.Endpoints()[0])
	return err
}

func (s *running) identity() (member, cluster dumplog.ID) {
	return dumplog.ID(s.status.Header.GetMemberId()), dumplog.ID(s.status.Header.GetClusterId())
}

func (s *running) server() (endpoint, version string) { return s.endpoint, s.status.Version }

func (s *running) close() error { return s.cli.Close() }

// refused returns the error for a member that answers but does not send a snapshot. Learners send none up to 3.4.
func (s *running) refused(err error) error {
	if grpcstatus.Convert(err).Message() == rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner) {
		return fmt.Errorf("%s is a learner, which sends no snapshot; --no-client copies its files: %w", s.endpoint, err)
	}
	return fmt.Errorf("%s does not send a snapshot (with auth enabled: see --user, and use a user with role root): %w",
		s.endpoint,
		err)
}

// begin starts the snapshot stream. Its first message contains the length.
func (s *running) begin(ctx context.Context) (io.Reader, int64, func() error, error) {
	stream, err := etcdserverpb.NewMaintenanceClient(s.cli.ActiveConnection()).Snapshot(ctx,
		&etcdserverpb.SnapshotRequest{})
	if err != nil {
		return nil, 0, nil, s.refused(err)
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, 0, nil, s.refused(err)
	}
	r := &snapshotReader{next: stream.Recv, piece: first.Blob, sum: sha256.New()}
	size := int64(first.RemainingBytes) + int64(len(first.Blob))
	r.left = size
	return r, size, func() error {
		if err := r.trailer(); err != nil {
			return err
		}
		before := s.status.Header.GetMemberId()
		if err := s.ask(ctx); err != nil {
			return err
		}
		if s.status.Header.GetMemberId() != before {
			return fmt.Errorf("%s is answered by member %x and by %x: it leads to several members", s.endpoint, before,
				s.status.Header.GetMemberId())
		}
		return nil
	}, nil
}

// snapshotReader reads the database from a snapshot stream. trailer compares the sha256 that follows it.
type snapshotReader struct {
	next  func() (*etcdserverpb.SnapshotResponse, error)
	piece []byte
	left  int64
	sum   hash.Hash
}

// Read returns io.EOF after the bytes of the database, before the sha256 that follows them, and
// io.ErrUnexpectedEOF if the stream ends earlier.
func (r *snapshotReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	if len(r.piece) == 0 {
		m, err := r.next()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		r.piece = m.Blob
	}
	n := copy(p, r.piece[:min(int64(len(r.piece)), r.left)])
	_, _ = r.sum.Write(r.piece[:n])
	r.piece = r.piece[n:]
	r.left -= int64(n)
	return n, nil
}

// trailer reads the sha256 at the end of the stream.
func (r *snapshotReader) trailer() error {
	got := append([]byte(nil), r.piece...)
	for {
		m, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if got = append(got, m.Blob...); len(got) > sha256.Size {
			return fmt.Errorf("the snapshot stream is longer than announced")
		}
	}
	if string(got) != string(r.sum.Sum(nil)) {
		return errors.New("the snapshot stream does not match its sha256")
	}
	return nil
}

// file copies the database file while the server may write to it.
type file struct {
	path string
	// scratch is the folder for the raw copy. It must be fast, so that no transaction happens during the copy.
	scratch string
}

func (d *file) identity() (member, cluster dumplog.ID) { return 0, 0 }
func (d *file) server() (endpoint, version string)     { return "", "" }
func (d *file) close() error                           { return nil }

// begin copies the file to scratch, and repeats that until the newest meta page is the same before and after. bbolt
// never changes a page that the newest transaction uses. It uses free pages, and reuses the pages freed by a
// transaction only in the transaction after the next. So while the newest meta page is the same, the pages it refers to
// are unchanged.
func (d *file) begin(ctx context.Context) (io.Reader, int64, func() error, error) {
	var last error
	for range rawTries {
		r, size, end, err := d.once(ctx)
		if err == nil {
			return r, size, end, nil
		}
		if last = err; !errors.Is(err, errMoved) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, 0, nil, ctx.Err()
		case <-time.After(rawPause):
		}
	}
	return nil, 0, nil, last
}

const (
	// rawTries bounds how often the file is copied again because it changed.
	rawTries = 20
	rawPause = 50 * time.Millisecond
)

var errMoved = errors.New("the database changed while it was copied; without --no-client the server sends a " +
	"consistent snapshot")

func (d *file) once(ctx context.Context) (_ io.Reader, _ int64, end func() error, err error) {
	src, size, err := regular.Open(d.path)
	if err != nil {
		return nil, 0, nil, err
	}
	defer func() { _ = src.Close() }()
	before, err := newestMeta(src)
	if err != nil {
		return nil, 0, nil, err
	}
	tmp, err := os.CreateTemp(d.scratch, ".etcd-medic-db-")
	if err != nil {
		return nil, 0, nil, err
	}
	_ = os.Remove(tmp.Name()) //nolint:forbidigo // our own scratch file, which remains readable while it is open
	defer func() {
		if err != nil {
			_ = tmp.Close()
		}
	}()
	if err = copyRaw(ctx, tmp, io.NewSectionReader(src, 0, size)); err != nil {
		return nil, 0, nil, err
	}
	after, err := newestMeta(src)
	if err != nil {
		return nil, 0, nil, err
	}
	if before != after {
		return nil, 0, nil, errMoved
	}
	copied, err := newestMeta(tmp)
	if err == nil && copied != before {
		err = errMoved
	}
	if err != nil {
		return nil, 0, nil, err
	}
	return io.NewSectionReader(tmp, 0, size), size, tmp.Close, nil
}

// rawPiece is how many bytes are copied between two checks of the context.
const rawPiece = 8 << 20

func copyRaw(ctx context.Context, to io.Writer, from io.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, rawPiece); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// newestMeta returns the valid meta page with the highest transaction ID.
func newestMeta(f io.ReaderAt) (tapMeta, error) {
	t := &dbTap{}
	head := make([]byte, 2*maxPage)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return tapMeta{}, err
	}
	_, _ = t.Write(head[:n])
	var m tapMeta
	for _, x := range t.metas {
		if x.txid >= m.txid {
			m = x
		}
	}
	if m.txid == 0 {
		return m, errors.New("neither meta page of the database is valid")
	}
	return m, nil
}

// paths returns the folders of a data dir.
func paths(dataDir, walDir string) (wal, snap, db string) {
	snap = filepath.Join(dataDir, "member", "snap")
	if wal = walDir; wal == "" {
		wal = filepath.Join(dataDir, "member", "wal")
	}
	return wal, snap, filepath.Join(snap, "db")
}
