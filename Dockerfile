# followpress, static, without a shell and without root:
#   docker build -t followpress .
#   docker run --rm -p 8080:8080 followpress
#   docker run --rm -v "$PWD/out:/site:ro" -e AWS_ACCESS_KEY_ID -e AWS_SECRET_ACCESS_KEY -e AWS_REGION followpress publish --site /site --dest s3://BUCKET
#   docker run --rm -p 8081:8081 -e AWS_ACCESS_KEY_ID -e AWS_SECRET_ACCESS_KEY -e AWS_REGION followpress serve --site s3://BUCKET --addr 0.0.0.0:8081
# The small fallback alone is /usr/local/bin/fallback: docker run --entrypoint fallback …
FROM golang:1.26@sha256:595c7847cff97c9a9e76f015083c481d26078f961c9c8dca3923132f51fe12f1 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# With .git, from which `followpress version` gets its version.
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/ ./cmd/followpress ./cmd/fallback

# Certificates, time zones and a user, nothing else.
FROM gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639
COPY --from=build /out/ /usr/local/bin/
EXPOSE 8080 8081
ENTRYPOINT ["followpress"]
CMD ["preview", "--addr", "0.0.0.0:8080"]
