package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority is the CA of one sandbox. Its key exists only in the memory of this process.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

// Lifetime of certificates: a sandbox may run for days, not for years. They are valid from well before now, because
// clocks may be set back.
const (
	lifetime = 30 * 24 * time.Hour
	earlier  = 48 * time.Hour
)

func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := template("etcd-medic sandbox CA")
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid, t.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, cert: cert, key: key, pool: x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a, os.WriteFile(a.caFile(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

func template(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-earlier),
		NotAfter: now.Add(lifetime),
	}, nil
}

func (a *authority) caFile() string { return filepath.Join(a.dir, "ca.pem") }

// pair is a certificate and its key on disk.
type pair struct{ cert, key string }

// issue writes a certificate for a name, valid for the given hosts (names and IP addresses). Without hosts it is a
// client certificate: if a client's certificate has hosts, etcd compares them with the client's address.
func (a *authority) issue(file, commonName string, hosts []string) (pair, error) {
	p := pair{cert: filepath.Join(a.dir, file+".pem"), key: filepath.Join(a.dir, file+"-key.pem")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, err
	}
	t, err := template(commonName)
	if err != nil {
		return p, err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return p, fmt.Errorf("certificate for %v: %w", hosts, err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return p, err
	}
	if err := os.WriteFile(p.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600); err != nil {
		return p, err
	}
	return p, os.WriteFile(p.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

// clientTLS returns how a client of the sandbox connects to the server called name.
func (a *authority) clientTLS(p pair, name string) (*tls.Config, error) {
	c, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{c}, ServerName: name,
		MinVersion: tls.VersionTLS12}, nil
}
