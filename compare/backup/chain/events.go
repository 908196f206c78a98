package chain

import (
	"bufio"
	"bytes"
	"compress/lzw"
	"compress/zlib"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// Event is one change of a key, as a watch reports it.
type Event struct {
	Delete         bool
	Key, Value     []byte
	CreateRevision int64
	ModRevision    int64
	Version        int64
	Lease          int64
	// Time is when the program that wrote the delta received the event, not when it was committed.
	Time time.Time
}

const (
	// maxContent bounds the uncompressed size of a file of a chain.
	maxContent = 64 << 30
	// maxEvent bounds one event: a request of etcd is at most 1.5 MiB unless raised; base64 adds a third.
	maxEvent = 256 << 20
)

// ErrTooLong says that a file unpacks to more than any snapshot contains.
var ErrTooLong = errors.New("it unpacks to more than 64 GiB")

// HashError says that the sha256 at the end of a delta does not match its content.
type HashError struct{ Stored, Computed string }

// Error returns both sums.
func (e *HashError) Error() string {
	return fmt.Sprintf("its sha256 does not match its content: stored %s, computed %s", e.Stored, e.Computed)
}

// Open returns the uncompressed content of a snapshot.
func (s *Snapshot) Open() (io.ReadCloser, error) {
	f, _, err := regular.Open(s.Path)
	if err != nil {
		return nil, err
	}
	r, err := Decompress(bufio.NewReaderSize(f, 256<<10), s.Suffix)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &content{Reader: &bounded{r: r, left: maxContent}, file: f, packed: r}, nil
}

// Decompress removes the compression that a suffix names.
func Decompress(r io.Reader, suffix string) (io.Reader, error) {
	switch suffix {
	case "":
		return r, nil
	case ".gz":
		return gzip.NewReader(r)
	case ".zlib":
		return zlib.NewReader(r)
	case ".Z":
		return lzw.NewReader(r, lzw.LSB, 8), nil
	}
	return nil, fmt.Errorf("compression %q is not known", suffix)
}

type content struct {
	io.Reader
	file   *os.File
	packed io.Reader
}

// Close releases the decoder and the file.
func (c *content) Close() error {
	if p, ok := c.packed.(io.Closer); ok {
		_ = p.Close() // a decoder that only reads
	}
	return c.file.Close()
}

type bounded struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLong
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Events yields the events of a delta in constant memory. An error ends it. A *HashError comes after the last event, if
// the whole content was read but does not match its sum.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		body := &untilSum{r: bufio.NewReaderSize(r, 64<<10), h: sha256.New()}
		dec := json.NewDecoder(&eventBound{r: body})
		if err := opening(dec); err != nil {
			yield(Event{}, body.why(err))
			return
		}
		for dec.More() {
			var w wireEvent
			if err := dec.Decode(&w); err != nil {
				yield(Event{}, body.why(err))
				return
			}
			e, err := w.event()
			if !yield(e, err) || err != nil {
				return
			}
		}
		if _, err := dec.Token(); err != nil {
			yield(Event{}, body.why(err))
			return
		}
		if err := body.finish(dec.Buffered()); err != nil {
			yield(Event{}, err)
		}
	}
}

func opening(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') {
		return fmt.Errorf("it starts with %v, not with an array of events", t)
	}
	return nil
}

// wireEvent is an event as encoded: clientv3.Event by encoding/json, and a time.
type wireEvent struct {
	EtcdEvent *struct {
		Type eventType `json:"type"`
		KV   *struct {
			Key            []byte `json:"key"`
			CreateRevision int64  `json:"create_revision"`
			ModRevision    int64  `json:"mod_revision"`
			Version        int64  `json:"version"`
			Value          []byte `json:"value"`
			Lease          int64  `json:"lease"`
		} `json:"kv"`
	} `json:"etcdEvent"`
	Time time.Time `json:"time"`
}

// eventType is 0 or absent for a put and 1 for a delete. Other encoders of the same message write the name.
type eventType int

// UnmarshalJSON reads a number or a name.
func (t *eventType) UnmarshalJSON(b []byte) error {
	switch s := string(bytes.Trim(b, `"`)); s {
	case "PUT", "0":
		*t = 0
	case "DELETE", "1":
		*t = 1
	default:
		return fmt.Errorf("event type %s is not known", strconv.Quote(s))
	}
	return nil
}

func (w *wireEvent) event() (Event, error) {
	if w.EtcdEvent == nil || w.EtcdEvent.KV == nil {
		return Event{}, errors.New("an event has no key")
	}
	kv := w.EtcdEvent.KV
	e := Event{Delete: w.EtcdEvent.Type == 1, Key: kv.Key, Value: kv.Value, CreateRevision: kv.CreateRevision,
		ModRevision: kv.ModRevision,
		Version:     kv.Version, Lease: kv.Lease, Time: w.Time}
	if len(e.Key) == 0 || e.ModRevision < 1 {
		return Event{}, errors.New("an event has no key or no revision")
	}
	return e, nil
}

// untilSum passes on and hashes everything but the last 32 bytes.
type untilSum struct {
	r    *bufio.Reader
	h    hash.Hash
	done bool
	err  error // of the file, if it is not the end
}

// Read implements io.Reader.
func (u *untilSum) Read(p []byte) (int, error) {
	if u.done {
		return 0, io.EOF
	}
	want := min(len(p)+sha256.Size, u.r.Size())
	b, err := u.r.Peek(want)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			u.err = err
		}
		u.done = true
	}
	n := max(len(b)-sha256.Size, 0)
	n = copy(p, b[:n])
	u.h.Write(p[:n])
	if _, derr := u.r.Discard(n); derr != nil {
		return n, derr
	}
	// The buffer may have had more than fits in p.
	if u.done && len(b)-n > sha256.Size {
		u.done = false
	}
	if u.done && n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// why returns the error of the file rather than the decoder's error about its end.
func (u *untilSum) why(err error) error {
	switch {
	case u.err != nil:
		return u.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it ends in the middle of the events: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// finish reads the data after the array and compares the sums.
func (u *untilSum) finish(buffered io.Reader) error {
	rest, err := io.Copy(io.Discard, io.MultiReader(buffered, u))
	if err != nil || u.err != nil {
		return errors.Join(err, u.err)
	}
	if rest > 0 {
		return fmt.Errorf("there are %d bytes between the events and their sha256", rest)
	}
	stored, err := io.ReadAll(io.LimitReader(u.r, sha256.Size+1))
	if err != nil {
		return err
	}
	if len(stored) != sha256.Size {
		return fmt.Errorf("the sha256 at its end is missing: %w", io.ErrUnexpectedEOF)
	}
	if sum := u.h.Sum(nil); !bytes.Equal(sum, stored) {
		return &HashError{Stored: fmt.Sprintf("%x", stored), Computed: fmt.Sprintf("%x", sum)}
	}
	return nil
}

// eventBound stops at an event that is too long, since the decoder would keep all of it in memory.
type eventBound struct {
	r io.Reader
}

// Read implements io.Reader.
func (b *eventBound) Read(p []byte) (int, error) {
	if len(p) > maxEvent {
		return 0, fmt.Errorf("an event of more than %s", plural.Size(maxEvent))
	}
	return b.r.Read(p)
}
