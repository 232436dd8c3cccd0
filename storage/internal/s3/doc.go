// Package s3 reads and writes a bucket of an S3-compatible server. It does not retry.
package s3
