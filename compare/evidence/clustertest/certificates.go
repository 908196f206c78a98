package clustertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a throw-away CA. Its certificates are PEM files in one folder: NAME.pem with the key NAME-key.pem; its
// own are those of "ca".
type Authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

// NewAuthority makes a CA with its files in dir.
func NewAuthority(t testing.TB, dir string) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: dir}
	a.cert = a.template("test CA")
	a.cert.IsCA, a.cert.BasicConstraintsValid, a.cert.KeyUsage = true, true, x509.KeyUsageCertSign
	a.key = a.write("ca", a.cert)
	return a
}

// Issue writes a certificate for servers and clients with that name as its CN, for the addresses.
func (a *Authority) Issue(name string, addresses ...net.IP) {
	a.t.Helper()
	c := a.template(name)
	c.KeyUsage, c.IPAddresses = x509.KeyUsageDigitalSignature, addresses
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	a.write(name, c)
}

// File is the certificate of that name, or its key with "-key" at the end of the name.
func (a *Authority) File(name string) string { return filepath.Join(a.dir, name+".pem") }

// Client is the configuration of a client that shows the certificate of that name.
func (a *Authority) Client(name string) *tls.Config {
	a.t.Helper()
	cert, err := tls.LoadX509KeyPair(a.File(name), a.File(name+"-key"))
	if err != nil {
		a.t.Fatal(err)
	}
	b, err := os.ReadFile(a.File("ca"))
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(b)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
}

func (a *Authority) template(name string) *x509.Certificate {
	a.next++
	return &x509.Certificate{SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
}

// write signs a certificate and writes it with its key; that of the CA signs itself.
func (a *Authority) write(name string, c *x509.Certificate) *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name: {Type: "CERTIFICATE", Bytes: der},
		name + "-key": {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(a.File(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return key
}
