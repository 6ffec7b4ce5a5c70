package config

import (
	"net/url"
	"strings"
)

const s3Scheme = "s3://"

// OnS3 reports whether the warehouse is in an object store.
func (w Warehouse) OnS3() bool { return strings.HasPrefix(w.Path, s3Scheme) }

// Location splits the path of a warehouse in an object store.
func (w Warehouse) Location() (bucket, folder string) {
	bucket, folder, _ = strings.Cut(strings.TrimPrefix(w.Path, s3Scheme), "/")
	return bucket, strings.Trim(folder, "/")
}

// The values of S3.Credentials.
const (
	credentialsStatic = "static"
	credentialsChain  = "default_chain"
)

func (c *checker) checkS3() {
	const base = "warehouse.s3"
	w := c.cfg.Warehouse
	if w.OnS3() && w.Network {
		c.add("has no meaning for a warehouse in an object store", "remove it", "warehouse.network")
	}
	s := w.S3
	if s == nil {
		return
	}
	if w.Path != "" && !w.OnS3() {
		c.add("has no meaning for a local warehouse", "remove it, or write path: s3://BUCKET/FOLDER", base)
		return
	}
	switch {
	case s.AccessKey.IsSet() && !s.SecretKey.IsSet() && c.intact(base+".secret_key"):
		c.add("is set without secret_key", "add warehouse.s3.secret_key", base+".access_key")
	case !s.AccessKey.IsSet() && s.SecretKey.IsSet() && c.intact(base+".access_key"):
		c.add("is set without access_key", "add warehouse.s3.access_key", base+".secret_key")
	case s.Credentials == credentialsStatic && !s.AccessKey.IsSet() && c.intact(base+".access_key"):
		c.add("is static without access_key", "add access_key and secret_key, or write default_chain", base+".credentials")
	case s.Credentials == credentialsChain && s.AccessKey.IsSet():
		c.add("contradicts access_key", "remove one of the two", base+".credentials")
	}
	if s.KMSKey != "" && s.Encryption != "aws:kms" && c.intact(base+".encryption") {
		c.add("is used with encryption: aws:kms only", "add it, or remove kms_key", base+".kms_key")
	}
	if s.Encryption == "aws:kms" && s.KMSKey == "" && c.intact(base+".kms_key") {
		c.add("is aws:kms without a key", "add warehouse.s3.kms_key", base+".encryption")
	}
	if _, err := (TLS{CA: s.CA}).roots(); err != nil {
		c.add(err.Error(), "check the path and its content", base+".ca")
	}
	if u, err := url.Parse(s.Endpoint); err == nil && u.Scheme == "http" && !isLoopback(u.Host) {
		c.warn(base+".endpoint", "data goes over the network unencrypted", "use https")
	}
}
