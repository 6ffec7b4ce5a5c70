package config_test

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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/config"
)

// writeCert writes a self-signed certificate and its key and returns its serial number.
func writeCert(t *testing.T, dir, name string, serial int64) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"kafka.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pk := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".pem"), crt, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".key"), pk, 0o600))
	pair, err := tls.X509KeyPair(crt, pk)
	require.NoError(t, err)
	return pair
}

// handshake connects a client to a server on loopback and returns the serial
// number of the client's certificate as the server saw it.
func handshake(t *testing.T, client *tls.Config, server *tls.Config) (int64, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer a.Close()
	b, err := l.Accept()
	require.NoError(t, err)
	defer b.Close()
	deadline := time.Now().Add(10 * time.Second)
	require.NoError(t, a.SetDeadline(deadline))
	require.NoError(t, b.SetDeadline(deadline))
	type result struct {
		serial int64
		err    error
	}
	done := make(chan result, 1)
	go func() {
		s := tls.Server(b, server)
		err := s.Handshake()
		var serial int64
		if certs := s.ConnectionState().PeerCertificates; len(certs) > 0 {
			serial = certs[0].SerialNumber.Int64()
		}
		if err != nil {
			b.Close()
		}
		done <- result{serial, err}
	}()
	err = tls.Client(a, client).Handshake()
	if err != nil {
		a.Close()
	}
	r := <-done
	if err == nil {
		err = r.err
	}
	return r.serial, err
}

func tlsConfig(t *testing.T, dir, block string) *tls.Config {
	t.Helper()
	text := strings.Replace(minimal, "}\nwarehouse", ", tls: "+block+" }\nwarehouse", 1)
	c, err := config.Parse(filepath.Join(dir, "a.yml"), []byte(text), testEnv)
	require.NoError(t, err)
	out, err := c.Kafka.TLS.ClientConfig()
	require.NoError(t, err)
	return out
}

func TestTLS_VerifiesTheServerByCAAndName(t *testing.T) {
	dir := t.TempDir()
	server := &tls.Config{Certificates: []tls.Certificate{writeCert(t, dir, "server", 1)}}
	writeCert(t, dir, "other", 2)

	_, err := handshake(t, tlsConfig(t, dir, "{ ca: server.pem, server_name: kafka.test }"), server)
	require.NoError(t, err)
	_, err = handshake(t, tlsConfig(t, dir, "{ ca: other.pem, server_name: kafka.test }"), server)
	require.ErrorContains(t, err, "certificate")
	_, err = handshake(t, tlsConfig(t, dir, "{ ca: server.pem, server_name: wrong.test }"), server)
	require.ErrorContains(t, err, "wrong.test")
	_, err = handshake(t, tlsConfig(t, dir, "{ server_name: kafka.test }"), server)
	require.Error(t, err, "the system does not know this authority")
	_, err = handshake(t, tlsConfig(t, dir, "{ insecure: true }"), server)
	require.NoError(t, err)

	old := server.Clone()
	old.MaxVersion = tls.VersionTLS11
	_, err = handshake(t, tlsConfig(t, dir, "{ ca: server.pem, server_name: kafka.test }"), old)
	require.Error(t, err, "TLS 1.1 was accepted")
}

func TestTLS_ClientCertificateIsReadAgainAtEveryHandshake(t *testing.T) {
	dir := t.TempDir()
	server := &tls.Config{
		Certificates: []tls.Certificate{writeCert(t, dir, "server", 1)}, ClientAuth: tls.RequireAnyClientCert,
	}
	writeCert(t, dir, "client", 10)
	client := tlsConfig(t, dir, "{ ca: server.pem, server_name: kafka.test, cert: client.pem, key: client.key }")
	serial, err := handshake(t, client, server)
	require.NoError(t, err)
	require.EqualValues(t, 10, serial)

	writeCert(t, dir, "client", 11)
	serial, err = handshake(t, client, server)
	require.NoError(t, err)
	require.EqualValues(t, 11, serial)

	require.NoError(t, os.Remove(filepath.Join(dir, "client.key")))
	_, err = handshake(t, client, server)
	require.ErrorContains(t, err, "cannot be used with its key")
}
