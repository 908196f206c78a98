// Package objectstest is a small object storage for tests: the parts of S3 for listing and reading, over HTTP on
// loopback.
package objectstest

import (
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Bucket is a bucket whose objects are the files of a folder.
type Bucket struct {
	dir    string
	server *httptest.Server
	// Bytes counts the object bytes sent.
	Bytes atomic.Int64
}

// Serve serves a folder as the bucket "b" and sets the environment variables for credentials.
func Serve(t *testing.T, dir string) *Bucket {
	t.Helper()
	b := &Bucket{dir: dir}
	b.server = httptest.NewServer(b)
	t.Cleanup(b.server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return b
}

// URL returns the address of a key.
func (b *Bucket) URL(key string) string {
	return "s3://b/" + key + "?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape(b.server.URL)
}

// ServeHTTP implements http.Handler.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if bucket != "b" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
		return
	}
	if key == "" {
		b.list(w, r.URL.Query().Get("prefix"))
		return
	}
	f, err := os.Open(filepath.Join(b.dir, filepath.FromSlash(key)))
	if err != nil {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<Error><Code>NoSuchKey</Code></Error>"))
		return
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil || st.IsDir() {
		http.NotFound(w, r)
		return
	}
	if st.Size() == 0 && r.Header.Get("Range") != "" { // as S3 answers
		http.Error(w, "<Error><Code>InvalidRange</Code></Error>", http.StatusRequestedRangeNotSatisfiable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(&counter{w, &b.Bytes}, r, "", st.ModTime(), f)
}

type counter struct {
	http.ResponseWriter
	n *atomic.Int64
}

// Write counts the bytes of the content that a client asked for.
func (c *counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

type listing struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	IsTruncated bool
	KeyCount    int
	Contents    []content
}

type content struct {
	Key          string
	LastModified string
	Size         int64
	ETag         string
}

func (b *Bucket) list(w http.ResponseWriter, prefix string) {
	var out listing
	_ = filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		key, err := filepath.Rel(b.dir, path)
		if key = filepath.ToSlash(key); err == nil && strings.HasPrefix(key, prefix) {
			out.Contents = append(out.Contents, content{key, st.ModTime().UTC().Format(time.RFC3339), st.Size(), `"0"`})
		}
		return err
	})
	slices.SortFunc(out.Contents, func(x, y content) int { return strings.Compare(x.Key, y.Key) })
	out.KeyCount = len(out.Contents)
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}
