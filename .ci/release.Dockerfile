# The image of a release: the binaries that .ci/release built, which are its context (dist).
FROM gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639
ARG TARGETOS TARGETARCH
COPY followpress_*_${TARGETOS}_${TARGETARCH}/followpress /usr/local/bin/
EXPOSE 8080 8081
ENTRYPOINT ["followpress"]
CMD ["preview", "--addr", "0.0.0.0:8080"]
