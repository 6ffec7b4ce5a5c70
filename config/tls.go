package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// ClientConfig returns the settings of a TLS client: at least TLS 1.2, the given
// or the system's authorities, and the client certificate read again at every
// handshake. It is safe for concurrent use.
func (t TLS) ClientConfig() (*tls.Config, error) {
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	out := &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: t.ServerName,
		InsecureSkipVerify: t.Insecure,
	}
	if t.Cert != "" {
		out.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.certificate()
		}
	}
	return out, nil
}

// roots reads the certificate authorities; nil stands for the system's.
func (t TLS) roots() (*x509.CertPool, error) {
	if t.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %s", reason(err))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("has no certificate in PEM form")
	}
	return pool, nil
}

// certificate reads the client certificate and its key.
func (t TLS) certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot be used with its key: %s", reason(err))
	}
	return &pair, nil
}
