package s3

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"

	json "github.com/goccy/go-json"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/cors"

	"github.com/followpress/followpress/site"
)

// Create creates the bucket unless it exists, and reports whether it did.
func (s *Bucket) Create(ctx context.Context) (created bool, err error) {
	exists, err := s.core.BucketExists(ctx, s.bucket)
	if err != nil {
		return false, s.explainHead(ctx, "look for the bucket", "", err)
	}
	if exists {
		return false, nil
	}
	if err := s.core.MakeBucket(ctx, s.bucket, minio.MakeBucketOptions{}); err != nil {
		code := minio.ToErrorResponse(err).Code
		if code == "BucketAlreadyOwnedByYou" {
			return false, nil
		}
		return false, explain("create the bucket", "", err)
	}
	return true, nil
}

// policyVersion is the version of the policy language, not of a policy.
const policyVersion = "2012-10-17"

// AllowRead lets everybody read the keys that match patterns, in which * matches any text. It keeps other statements
// of the bucket's policy. Servers without policies return ErrUnsupported.
func (s *Bucket) AllowRead(ctx context.Context, patterns []string) error {
	current, err := s.core.Client.GetBucketPolicy(ctx, s.bucket) // the method of Core fails if there is no policy
	if err != nil {
		return explain("read the bucket's policy", "", err)
	}
	policy := struct {
		Version   string
		ID        string `json:"Id,omitempty"`
		Statement []map[string]any
	}{Version: policyVersion}
	if current != "" {
		if err := json.Unmarshal([]byte(current), &policy); err != nil {
			return fmt.Errorf("read the bucket's policy: %w; it would be lost", err)
		}
	}
	sid := s.statementID()
	policy.Statement = slices.DeleteFunc(policy.Statement, func(s map[string]any) bool { return s["Sid"] == sid })
	resources := make([]string, len(patterns))
	for i, pattern := range patterns {
		resources[i] = "arn:aws:s3:::" + s.bucket + "/" + s.prefix + pattern
	}
	policy.Statement = append(policy.Statement, map[string]any{
		"Sid": sid, "Effect": "Allow", "Principal": map[string]any{"AWS": []string{"*"}},
		"Action": []string{"s3:GetObject"}, "Resource": resources,
	})
	text, err := json.Marshal(policy)
	if err != nil {
		return fmt.Errorf("encode the bucket's policy: %w", err)
	}
	if err := s.core.PutBucketPolicy(ctx, s.bucket, string(text)); err != nil {
		return explain("set the bucket's policy", "", err)
	}
	return nil
}

// statementID returns the ID of our statement in the policy, one per prefix. IDs have letters and digits only.
func (s *Bucket) statementID() string {
	sum := site.Sum([]byte(s.prefix))
	return "FollowpressRead" + hex.EncodeToString(sum[:4])
}

// corsRule is the ID of our rule in the bucket's CORS rules.
const corsRule = "followpress"

// AllowOrigins lets web pages of any origin read (CORS). It keeps other rules of the bucket. Servers without CORS
// rules return ErrUnsupported.
func (s *Bucket) AllowOrigins(ctx context.Context) error {
	config, err := s.core.GetBucketCors(ctx, s.bucket)
	if err != nil {
		return explain("read the bucket's CORS rules", "", err)
	}
	var rules []cors.Rule
	if config != nil {
		rules = slices.DeleteFunc(config.CORSRules, func(r cors.Rule) bool { return r.ID == corsRule })
	}
	rules = append(rules, cors.Rule{
		ID: corsRule, AllowedOrigin: []string{"*"}, AllowedMethod: []string{http.MethodGet, http.MethodHead},
		AllowedHeader: []string{"*"}, ExposeHeader: []string{"ETag"}, MaxAgeSeconds: 86400,
	})
	if err := s.core.SetBucketCors(ctx, s.bucket, cors.NewConfig(rules)); err != nil {
		return explain("set the bucket's CORS rules", "", err)
	}
	return nil
}
