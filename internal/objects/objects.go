// Package objects reads object storage: s3://BUCKET/KEY, gs://BUCKET/KEY and azblob://CONTAINER/KEY. Credentials and
// query parameters are those of the drivers of gocloud.dev/blob (?region=, ?endpoint=, ?use_path_style=true). It only
// lists and reads. Builds with the tag lite have no drivers; there every call returns an error.
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

// schemes are the schemes of the drivers; anything else is a path.
var schemes = []string{"s3", "gs", "azblob"}

// IsURL reports whether where is an address in object storage and not a path.
func IsURL(where string) bool {
	for _, s := range schemes {
		if strings.HasPrefix(where, s+"://") {
			return true
		}
	}
	return false
}

// ErrNone is wrapped by the error for an address without an object: neither this key nor any below it exists.
var ErrNone = errors.New("no object exists at or below this address")

// Object is one object below an address.
type Object struct {
	// Name is the part of the key after the address. If the address names the object itself, it is the last part of the
	// key.
	Name string
	// URL names this object, with the parameters of the address.
	URL string
	// Size is in bytes.
	Size     int64
	Modified time.Time

	key string
}

// Store is an open bucket. It is safe for concurrent use.
type Store struct {
	bucket bucket
	// bare is the address without key and parameters, query the parameters as given.
	bare, query string
	key         string
}

// bucket is the part of a bucket that Store uses; a build without drivers has none.
type bucket interface {
	list(ctx context.Context, prefix string, each func(key string, size int64, modified time.Time) error) error
	stat(ctx context.Context, key string) (size int64, modified time.Time, found bool, err error)
	read(ctx context.Context, key string, length int64) (io.ReadCloser, error)
	close() error
}

// Open opens the bucket of an address. It sends no request yet.
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

// parameters returns the parameters of the address. For S3 it sets when_required: otherwise the driver prints a line
// for each object without a checksum, and such objects are common. The reader checks the content instead.
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

// Shown returns an address without its parameters, which may contain credentials.
func Shown(where string) string {
	bare, _, _ := strings.Cut(where, "?")
	return bare
}

// List calls each for the objects of an address, in key order: the object itself, else all objects below it. It stops
// after limit objects; more says whether there are others.
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
		if strings.HasSuffix(key, "/") { // created by consoles as a folder
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

// Read streams an object, or only its first length bytes if length is not negative. The caller closes the result.
func (s *Store) Read(ctx context.Context, o Object, length int64) (io.ReadCloser, error) {
	if o.Size == 0 { // S3 refuses every range of an empty object
		return io.NopCloser(strings.NewReader("")), nil
	}
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
