// Package objects reads object storage: s3://BUCKET/KEY, gs://BUCKET/KEY and azblob://CONTAINER/KEY, with the
// credentials and the query parameters that the drivers of gocloud.dev/blob take (?region=, ?endpoint=,
// ?use_path_style=true). It only lists and reads. Builds with the tag lite have no drivers; every call then says so.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
)

// schemes are those of the drivers; a path that begins with another one is a path.
var schemes = []string{"s3", "gs", "azblob"}

// IsURL tells an address in object storage from a path.
func IsURL(where string) bool {
	for _, s := range schemes {
		if strings.HasPrefix(where, s+"://") {
			return true
		}
	}
	return false
}

// ErrNone is in the error of an address that names nothing: no object, and no object below it.
var ErrNone = errors.New("no object has this name, and none is below it")

// Object is one object below an address.
type Object struct {
	// Name is the part of the key after the address, or the last part of the key when the address names the object
	// itself.
	Name string
	// URL names this object, with the parameters of the address.
	URL string
	// Size is in bytes.
	Size     int64
	Modified time.Time

	key string
}

// Store is an open bucket. It is safe for use by several goroutines.
type Store struct {
	bucket bucket
	// bare is the address without key and parameters, query the parameters as given.
	bare, query string
	key         string
}

// bucket is what is needed of a bucket; a build without drivers has none.
type bucket interface {
	list(ctx context.Context, prefix string, each func(key string, size int64, modified time.Time) error) error
	stat(ctx context.Context, key string) (size int64, modified time.Time, found bool, err error)
	read(ctx context.Context, key string, length int64) (io.ReadCloser, error)
	close() error
}

// Open opens the bucket of an address. Nothing is asked of it yet.
func Open(ctx context.Context, where string) (*Store, error) {
	u, err := url.Parse(where)
	if err != nil || !IsURL(where) || u.Host == "" {
		return nil, fmt.Errorf("%s: want s3://BUCKET/KEY, gs://BUCKET/KEY or azblob://CONTAINER/KEY", Shown(where))
	}
	s := &Store{bare: u.Scheme + "://" + u.Host, query: u.RawQuery, key: strings.TrimPrefix(u.Path, "/")}
	if s.bucket, err = openBucket(ctx, s.bare+parameters(u)); err != nil {
		return nil, fmt.Errorf("%s: %w", Shown(where), err)
	}
	return s, nil
}

// parameters are those of the address. Objects without a checksum are common, and the driver of S3 prints a line for
// each unless it is told to check only what must be checked; content is checked by whoever reads it.
func parameters(u *url.URL) string {
	q := u.Query()
	if u.Scheme == "s3" && !q.Has("response_checksum_validation") {
		q.Set("response_checksum_validation", "when_required")
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// Close releases the bucket.
func (s *Store) Close() error { return s.bucket.close() }

// Shown is an address without its parameters, which may hold credentials.
func Shown(where string) string {
	bare, _, _ := strings.Cut(where, "?")
	return bare
}

// List hands out the objects that the address names, in the order of their keys: the object itself, else all below it.
// At most limit objects are handed out; whether there are more is the result.
func (s *Store) List(ctx context.Context, limit int, each func(Object) error) (more bool, err error) {
	if s.key != "" && !strings.HasSuffix(s.key, "/") {
		size, modified, found, err := s.bucket.stat(ctx, s.key)
		if err != nil {
			return false, err
		}
		if found {
			name := s.key[strings.LastIndexByte(s.key, '/')+1:]
			return false, each(Object{Name: name, URL: s.url(s.key), Size: size, Modified: modified, key: s.key})
		}
	}
	prefix := s.key
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	n := 0
	err = s.bucket.list(ctx, prefix, func(key string, size int64, modified time.Time) error {
		if strings.HasSuffix(key, "/") { // what consoles create as a folder
			return nil
		}
		if n++; n > limit {
			more = true
			return errEnough
		}
		return each(Object{Name: key[len(prefix):], URL: s.url(key), Size: size, Modified: modified, key: key})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err == nil && n == 0 {
		err = ErrNone
	}
	return more, err
}

var errEnough = errors.New("enough objects")

// Read streams an object, or its first bytes when length is not negative. The caller closes the result.
func (s *Store) Read(ctx context.Context, o Object, length int64) (io.ReadCloser, error) {
	r, err := s.bucket.read(ctx, o.key, length)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Shown(o.URL), err)
	}
	return r, nil
}

func (s *Store) url(key string) string {
	u := s.bare + (&url.URL{Path: "/" + key}).EscapedPath()
	if s.query != "" {
		u += "?" + s.query
	}
	return u
}
